"""What the host spends on a large product with a kernel of fixed shape that takes no time."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

from pynq_torch.board.bus import IpModel

CONDITIONS = (
    "1024^3 int8, 64 starts of a kernel that is done at once, operands in ordinary memory, of 15"
)


class NullKernel(IpModel):
    """Registers that keep what is written, and AP_DONE at once.

    It takes the place of the kernel's process, whose waking up would be most of what is measured.
    """

    def __init__(self, board: Any, ip: Any) -> None:
        super().__init__(board, ip)
        self._words = memoryview(bytearray(4096)).cast("I")
        self._done = 0

    def read(self, offset: int, slave: str = "") -> int:
        """AP_IDLE, and AP_DONE once after a start."""
        if offset:
            return self._words[offset >> 2]
        control, self._done = 0x4 | self._done, 0
        return control

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Finish where AP_START is written."""
        if offset == 0 and value & 1:
            self._done = 0x2
        else:
            self._words[offset >> 2] = value

    def write_block(self, offset: int, words: memoryview, slave: str = "") -> None:
        """Keep a block of arguments, as the model of a real kernel does."""
        first = offset >> 2
        self._words[first : first + len(words)] = words


def host_ms(size: int = 1024, repeat: int = 15) -> float:
    """Return the median of the milliseconds that ``overlay.matrix_mult(a, b)`` takes.

    Widening and copying both operands, starting and waiting for each tile product, adding them up
    in a new tensor in CMA memory. Nothing of it is hidden behind the kernel's work.
    """
    import torch

    import pynq_torch

    board = pynq_torch.use_board("csim")
    unit = pynq_torch.load("matrix_mult").matrix_mult
    region = board.bus.find(unit.mmio.base_addr)
    null = NullKernel(board, region.model.ip)
    board.bus.attach(region.base, region.nbytes, null, region.slave, region.name)
    torch.manual_seed(0)
    a, b = (torch.randint(-128, 128, (size, size), dtype=torch.int8) for _ in range(2))
    times = []
    for _ in range(repeat + 3):
        begin = time.perf_counter()
        unit(a, b)
        times.append(time.perf_counter() - begin)
    board.close()
    return median(times[3:]) * 1e3  # the first ones fill the buffer pool


if __name__ == "__main__":
    print(f"{host_ms():.3g} ms: {CONDITIONS}")
