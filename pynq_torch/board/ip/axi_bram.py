"""AXI BRAM controller (PG078): plain memory in the PL, seen by the processor and by PL masters."""

from __future__ import annotations

from typing import ClassVar

from pynq_torch.board.bus import IpModel
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.services import BoardServices


class AxiBram(IpModel):
    """Block RAM behind an AXI BRAM controller.

    The controller has no registers when ECC is off (PG078, "Register Space"), so every address is
    memory. The bytes live in the board's shared memory, where engines see them at the same address.
    """

    vlnv_names: ClassVar[tuple[str, ...]] = ("axi_bram_ctrl",)

    def __init__(self, board: BoardServices, ip: IpInstance) -> None:
        super().__init__(board, ip)
        self._windows: dict[str, memoryview] = {}
        for slave in ip.slaves:
            window = board.memory.add_window(ip.name, slave.base, slave.nbytes)
            self._windows[slave.interface] = memoryview(window.map)[: slave.nbytes]

    def memory(self, slave: str = "") -> memoryview | None:
        """Return the memory behind the whole range of the bus interface ``slave``."""
        return self._window(slave)

    def read(self, offset: int, slave: str = "") -> int:
        """Read a 32-bit word."""
        return int.from_bytes(self._window(slave)[offset : offset + 4], "little")

    def write(self, offset: int, value: int, slave: str = "") -> None:
        """Write a 32-bit word."""
        self._window(slave)[offset : offset + 4] = value.to_bytes(4, "little")

    def close(self) -> None:
        """Let go of the memory; arrays over it that a program still holds stay readable."""
        self._windows.clear()

    def _window(self, slave: str) -> memoryview:
        window = self._windows.get(slave)
        return next(iter(self._windows.values())) if window is None else window
