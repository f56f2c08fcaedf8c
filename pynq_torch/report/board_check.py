"""What a board does, tried part by part: clocks, memory, kernels, DMA, interrupts, times.

It needs numpy and pynq alone, as they are on a PYNQ-Z2, and bounds every wait.
"""

from __future__ import annotations

import asyncio
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from statistics import median
from typing import TYPE_CHECKING, Any

import numpy as np

from pynq_torch import buffers, waits
from pynq_torch.errors import BitstreamError, PynqTorchError
from pynq_torch.hls.ap_ctrl import is_idle
from pynq_torch.hls.design import check_bitstream
from pynq_torch.overlay import available_overlays, ensure_event_loop, load
from pynq_torch.timing import model_cycles, where_measured

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CHECKS", "Outcome", "Row", "check_board", "machine"]

TIMEOUT_S = 30.0
#: How far a time or a count may be from its model before a check fails, as a factor. The models'
#: own agreement with published designs is a few percent (docs/fidelity.md); the rest is Python's.
TOLERANCE = 1.5
_SIZES = (1, 1000, 65536)
_REPEAT = 5


class Failed(PynqTorchError):
    """A check found what it did not expect."""


class Skipped(PynqTorchError):
    """A check cannot be made on this board; the message says why."""


@dataclass(frozen=True)
class Row:
    """A number that a check found, and what was expected.

    Attributes
    ----------
    kind, expected_kind : str
        ``"measured"``, ``"cycles"`` or ``"model"``.
    """

    what: str
    value: float
    unit: str
    kind: str
    expected: float | None = None
    expected_kind: str = ""


@dataclass
class Outcome:
    """How one check went.

    Attributes
    ----------
    verdict : str
        ``"pass"``, ``"fail"`` or ``"skipped"``.
    said : str
        Why it failed or was skipped; empty for one that passed.
    """

    name: str
    verdict: str
    said: str = ""
    seconds: float = 0.0
    rows: list[Row] = field(default_factory=list)


def check_board(on_outcome: Callable[[Outcome], object] = lambda _: None) -> list[Outcome]:
    """Try everything on the active board; one failed check does not stop the others.

    Parameters
    ----------
    on_outcome : callable
        Called with each outcome as soon as it is there.
    """
    outcomes = []
    for name, check in CHECKS.items():
        outcome = Outcome(name, "pass")
        began = time.perf_counter()
        try:
            outcome.rows.extend(check())
        except Skipped as error:
            outcome.verdict, outcome.said = "skipped", str(error)
        except Exception as error:  # noqa: BLE001  # a board that fails does it in any way
            outcome.verdict, outcome.said = "fail", f"{type(error).__name__}: {error}"
        outcome.seconds = round(time.perf_counter() - began, 3)
        outcomes.append(outcome)
        on_outcome(outcome)
    return outcomes


def machine() -> dict[str, str]:
    """Return what the checks ran on."""
    import pynq

    import pynq_torch

    device = pynq.Device.active_device
    kind = getattr(device, "board_name", "")  # "csim"; a real board has none
    return {
        "board": f"{device.name} ({kind})" if kind else str(device.name),
        "times are of": where_measured(device=device),
        "machine": f"{platform.machine()}, {platform.release()}, {os.cpu_count()} CPUs",
        "python": platform.python_version(),
        "numpy": np.__version__,
        "pynq": version("pynq"),
        "pynq_torch": pynq_torch.__version__,
    }


def _real() -> bool:
    """Whether times are those of a board."""
    return where_measured() == "PL of the board"


def _overlay(name: str) -> Any:
    """Load an overlay; one that is a simulation image is skipped on a real board."""
    path = available_overlays()[name]
    try:
        check_bitstream(path, real_hardware=_real())
    except BitstreamError as error:
        raise Skipped(str(error)) from error
    ensure_event_loop()
    return load(name)


def _same(what: str, found: NDArray[Any], expected: NDArray[Any]) -> None:
    wrong = np.flatnonzero(np.asarray(found) != expected)
    if wrong.size:
        at = int(wrong[0])
        raise Failed(
            f"{what}: {wrong.size} of {expected.size} elements are wrong, the first at {at}: found "
            f"{found[at]}, expected {expected[at]}"
        )


def _near(row: Row) -> Row:
    """Return the row; raise where it is further from what was expected than `TOLERANCE`."""
    if row.expected is not None and not 1 / TOLERANCE <= row.value / row.expected <= TOLERANCE:
        raise Failed(
            f"{row.what}: {row.value:.4g} {row.unit} ({row.kind}), expected {row.expected:.4g} "
            f"({row.expected_kind}) within a factor of {TOLERANCE}"
        )
    return row


def _typical(run: Callable[[], object], calls: int = 1) -> float:
    """Return the median of the seconds that a call takes."""
    times = []
    for _ in range(_REPEAT):
        begin = time.perf_counter()
        for _ in range(calls):
            run()
        times.append((time.perf_counter() - begin) / calls)
    return median(times)


def _clocks() -> Iterator[Row]:
    from pynq.ps import Clocks

    yield Row("CPU", Clocks.cpu_mhz, "MHz", "measured", 650, "PYNQ-Z2's boot")
    before = Clocks.fclk0_mhz
    try:
        for wanted in (50.0, 100.0):
            Clocks.fclk0_mhz = wanted
            yield _near(Row("FCLK0 set", Clocks.fclk0_mhz, "MHz", "measured", wanted, "asked for"))
    finally:
        Clocks.fclk0_mhz = before


def _cma() -> Iterator[Row]:
    rng = np.random.default_rng(0)
    for nbytes in (4, 4096, 1 << 20, 8 << 20):
        values = rng.integers(0, 256, nbytes, dtype=np.uint8)
        buffer = buffers.empty((nbytes,), np.uint8)
        buffer[:] = values
        buffer.flush()
        buffer.invalidate()
        _same(f"a buffer of {nbytes} bytes", buffer, values)
        address = int(buffer.device_address)
        if address % 4096 or not address:
            raise Failed(f"a buffer is at 0x{address:08x}; expected a page's address")
        seconds = _typical(partial(np.copyto, buffer, values))
        buffer.freebuffer()
    yield Row("copy into CMA", nbytes / seconds / 1e6, "MB/s", "measured")


def _registers() -> Iterator[Row]:
    vadd = _overlay("vadd").vadd
    offset = vadd.register_map.n.address
    for value in (0, 1, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF):
        vadd.write(offset, value)
        if (found := vadd.read(offset) & 0xFFFFFFFF) != value:
            raise Failed(f"register n of vadd: wrote 0x{value:08x}, read 0x{found:08x}")
    write = _typical(lambda: vadd.write(offset, 1), 200)
    read = _typical(lambda: vadd.read(offset), 200)
    expected = 31.0 if _real() else None  # a published measurement; see docs/board.md
    yield Row("register write", write * 1e6, "us", "measured", expected, "published")
    yield Row("register read", read * 1e6, "us", "measured", expected, "published")


def _memory_ports() -> Iterator[Row]:
    overlay = _overlay("vadd")
    vadd, rng, times, counted = overlay.vadd, np.random.default_rng(1), {}, {}
    for n in _SIZES:
        a, b, c = (buffers.empty((n,), np.float32) for _ in range(3))
        a[:], b[:] = rng.random(n, dtype=np.float32), rng.random(n, dtype=np.float32)

        def run(a: Any = a, b: Any = b, c: Any = c, n: int = n) -> None:
            vadd.start(a=a, b=b, c=c, n=n).wait(TIMEOUT_S)

        run()
        _same(f"vadd of {n} elements over HP0, HP1 and HP2", c, np.asarray(a) + np.asarray(b))
        times[n] = _typical(run)
        counted[n] = getattr(vadd.last_run, "cycles", None)
    n = _SIZES[-1]
    yield Row("start to done, 1 element", times[1] * 1e6, "us", "measured")
    # What one element takes as well is Python's.
    cycles = (times[n] - times[1]) * overlay.clock_hz
    yield from _against_model("vadd", cycles, counted[n], {"n": n})


def _against_model(
    kernel: str, cycles: float, counted: int | None, sizes: dict[str, int]
) -> Iterator[Row]:
    """Compare what a kernel took with its model, where the times or counts are a board's."""
    modelled, what = model_cycles(kernel, **sizes), f"{kernel}, {sizes}"
    if _real():
        yield _near(Row(what, cycles, "cycles", "measured", modelled, "model"))
    if counted is not None:
        yield _near(Row(what, counted, "cycles", "cycles", modelled, "model"))


def _dma() -> Iterator[Row]:
    overlay = _overlay("stream")
    kernel, rng = overlay.scale_stream_0, np.random.default_rng(2)
    for n in _SIZES:
        x, y = (buffers.empty((n,), np.float32) for _ in range(2))
        x[:] = rng.random(n, dtype=np.float32)
        kernel.move(x, y, TIMEOUT_S, gain=2.0, offset=0.0)
        _same(f"scale_stream of {n} elements by one DMA", y, 2 * np.asarray(x))
    seconds = _typical(lambda: kernel.move(x, y, TIMEOUT_S, gain=2.0, offset=0.0))
    expected = x.nbytes * overlay.clock_hz / model_cycles("scale_stream", beats=n) / 1e6
    row = Row("a packet there and back", x.nbytes / seconds / 1e6, "MB/s", "measured")
    yield row if not _real() else Row(row.what, row.value, row.unit, row.kind, expected, "model")


def _interrupts() -> Iterator[Row]:
    overlay = _overlay("stream")
    dma, kernel = overlay.axi_dma_0, overlay.scale_stream_0
    if getattr(dma.recvchannel, "_interrupt", None) is None:
        raise Skipped("this board gives programs no interrupts; waits poll")
    x, y = (buffers.empty((1000,), np.float32) for _ in range(2))
    x[:] = 1.0

    async def once() -> None:
        run = kernel.start(gain=3.0, offset=0.0)
        dma.recvchannel.transfer(y)
        dma.sendchannel.transfer(x)
        await asyncio.wait_for(dma.recvchannel.wait_async(), TIMEOUT_S)
        run.wait(TIMEOUT_S)

    loop = asyncio.get_event_loop_policy().get_event_loop()
    seconds = _typical(lambda: loop.run_until_complete(once()))
    _same("scale_stream after an interrupt", y, np.full(1000, 3.0, np.float32))
    yield Row("start to interrupt, 1000 elements", seconds * 1e6, "us", "measured")


def _hang() -> Iterator[Row]:
    """A transfer that nothing feeds has to end with a diagnosis, and the DMA to work afterwards."""
    overlay = _overlay("stream")
    dma, kernel = overlay.axi_dma_0, overlay.scale_stream_0
    x, y = (buffers.empty((16,), np.float32) for _ in range(2))
    dma.recvchannel.transfer(y)
    began = time.perf_counter()
    try:
        waits.wait(dma.recvchannel, timeout_s=0.2)
    except waits.TransferError as error:
        raise Failed(f"the DMA stopped instead of waiting: {error}") from error
    except TimeoutError:
        yield Row("a wait of 0.2 s", time.perf_counter() - began, "s", "measured", 0.2, "asked for")
    else:
        raise Failed("a transfer ended that nothing had fed")
    waits.reset(dma)
    x[:] = 1.0
    kernel.move(x, y, TIMEOUT_S, gain=1.0, offset=1.0)
    _same("scale_stream after a reset of the DMA", y, np.full(16, 2.0, np.float32))


def _overlays() -> Iterator[Row]:
    """Load every overlay that this board can, and read AP_CTRL of its kernels."""
    names, loaded, skipped = available_overlays(), 0, 0
    for name in names:
        try:
            overlay = _overlay(name)
        except Skipped:
            skipped += 1
            continue
        for unit in overlay.kernels.values():
            if not is_idle(unit.read(0)):
                raise Failed(f"overlay {name}: {unit.cu} is not idle after the load")
        loaded += 1
    if not loaded:
        raise Skipped(f"all {skipped} bitstreams are simulation images; build real ones first")
    yield Row("overlays loaded", loaded, f"of {len(names)}", "measured")


#: Name -> check. It yields what it found, and raises where that is wrong.
CHECKS: dict[str, Callable[[], Iterable[Row]]] = {
    "clocks": _clocks,
    "CMA buffers": _cma,
    "registers": _registers,
    "kernel over HP0 to HP2": _memory_ports,
    "DMA": _dma,
    "interrupts": _interrupts,
    "a wait that ends": _hang,
    "overlays": _overlays,
}
