"""Runs of compute units, told to whoever watches: the profiler, the kernel logger, torch.profiler.

Drivers ask `observing` once a start; nothing else happens while nobody watches.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from .base import Kernel

__all__ = [
    "Array",
    "KernelCall",
    "Observer",
    "begun",
    "ended",
    "observe",
    "observing",
    "prepare",
    "unobserve",
]


class Array(NamedTuple):
    """A buffer that was given to a kernel.

    Parameters
    ----------
    dtype : str
        numpy's name.
    shape : tuple of int
        Its shape.
    address : int
        Physical address of the first element.
    skipped : int
        Bytes from there to where the kernel begins: its share of a larger product.
    """

    dtype: str
    shape: tuple[int, ...]
    address: int
    skipped: int = 0

    def __str__(self) -> str:
        more = f" + {self.skipped}" if self.skipped else ""
        return f"{self.dtype}[{'x'.join(map(str, self.shape))}] at 0x{self.address:08x}{more}"


@dataclass(slots=True, eq=False)
class KernelCall:
    """One start of a compute unit.

    Attributes
    ----------
    cu, kernel : str
        The compute unit and the kernel it is an instance of.
    arguments : dict
        Argument name -> number, or `Array` for a buffer.
    registers : dict of str to int
        Register name, as the hardware handoff has it -> 32-bit value.
    thread : str
        Name of the thread that started it.
    start : float
        ``time.perf_counter()`` at AP_START.
    seconds : float or None
        From AP_START to the end as the host saw it; ``None`` while the unit is at work.
    kind : {"measured", "cycles", "model"}
        Where `seconds` comes from; see `pynq_torch.timing`.
    where : str
        Whose wall clock, where measured: ``"csim on this PC"``, ``"PL of the board"``.
    cycles : int or None
        Of the PL's clock, where the board counted them (board ``rtl``); set once it is over.
    transfer_s : float
        What the driver spent on the CPU's cache for this run, before it and after it.
    error : str
        How it ended if not well: type of the exception, or words.
    traced : bool
        Whether it is in a trace of ``torch.profiler``.
    """

    cu: str
    kernel: str
    arguments: dict[str, int | float | str | Array]
    registers: dict[str, int]
    thread: str = ""
    start: float = 0.0
    seconds: float | None = None
    kind: str = "measured"
    where: str = ""
    cycles: int | None = None
    transfer_s: float = 0.0
    error: str = ""
    traced: bool = False


#: Called twice a run, in the thread that drives it: at AP_START, and when it has ended.
Observer = Callable[[KernelCall], None]
_observers: list[Observer] = []


def observe(observer: Observer) -> None:
    """Tell `observer` of every run from now on."""
    if observer not in _observers:
        _observers.append(observer)


def unobserve(observer: Observer) -> None:
    """Stop that."""
    if observer in _observers:
        _observers.remove(observer)


def observing() -> bool:
    """Whether anybody watches: an observer, or torch's own profiler."""
    return bool(_observers) or _torch_profiles()


_profiling: Callable[[], bool] | None = None


def _torch_profiles() -> bool:
    global _profiling
    if _profiling is None:
        # Not imported here: programs that use pynq only have no torch.
        torch = sys.modules.get("torch")
        if torch is None:
            return False
        _profiling = torch.autograd._profiler_enabled
    return _profiling()


def prepare(
    kernel: Kernel,
    values: Mapping[str, Any],
    words: Mapping[str, Any],
    owners: Sequence[Any] = (),
) -> KernelCall:
    """Describe a run that is about to be started.

    Parameters
    ----------
    kernel : Kernel
        Its driver.
    values : mapping
        Argument name -> what the caller gave: numbers, buffers, arrays.
    words : mapping
        Argument name -> what goes into its registers, as an integer or as little-endian bytes.
    owners : sequence
        Buffers and tensors whose addresses may be among the integers in `values`.
    """
    from pynq_torch.timing import where_measured

    if _torch_profiles():
        from pynq_torch.profiler import torch_feed  # noqa: F401 (loaded now, not while the run is timed)
    places = [place for place in map(_array, owners) if place is not None]
    return KernelCall(
        kernel.cu,
        kernel.kernel_name,
        {name: _describe(value, places) for name, value in values.items()},
        _registers(kernel, words),
        threading.current_thread().name,
        where=where_measured("pl", kernel.device),
    )


def begun(call: KernelCall) -> KernelCall:
    """Tell that AP_START is about to be written; return `call`."""
    call.start = time.perf_counter()
    _tell(call)
    return call


def ended(call: KernelCall, error: str = "") -> None:
    """Tell that a run is over, or was given up."""
    call.seconds = time.perf_counter() - call.start
    call.error = error
    _tell(call)


def _tell(call: KernelCall) -> None:
    for observer in tuple(_observers):
        observer(call)
    if call.traced or (call.seconds is None and _torch_profiles()):
        from pynq_torch.profiler.torch_feed import feed

        call.traced = True
        feed(call)


#: Finds the physical address of a tensor on device "pynq"; the device sets it.
address_of: Callable[[Any], int | None] | None = None


def _array(value: Any) -> tuple[Array, int] | None:
    """Return what a kernel gets with the address of a buffer or tensor, and its size in bytes."""
    address = getattr(value, "device_address", None)
    if address is None and address_of is not None and hasattr(value, "untyped_storage"):
        address = address_of(value)
    if address is None:
        return None
    dtype = str(value.dtype).removeprefix("torch.")
    return Array(dtype, tuple(map(int, value.shape)), int(address)), int(value.nbytes)


def _describe(value: Any, places: Sequence[tuple[Array, int]]) -> int | float | str | Array:
    if isinstance(value, (int, float)):
        for array, nbytes in places:
            if array.address <= value < array.address + nbytes:
                return array._replace(skipped=int(value) - array.address)
        return value
    if (found := _array(value)) is not None:
        return found[0]
    if getattr(value, "ndim", 0):
        return f"{value.dtype}[{'x'.join(map(str, value.shape))}] in the kernel's own memory"
    if hasattr(value, "item"):
        number: int | float = value.item()
        return number
    return str(value)


def _registers(kernel: Kernel, words: Mapping[str, Any]) -> dict[str, int]:
    """Return the value of every 32-bit register of the arguments, in order of their offsets."""
    names = {r["address_offset"]: name for name, r in (kernel._registers or {}).items()}
    found: dict[str, int] = {}
    for parameter in sorted(kernel.parameters, key=lambda p: p.offset):
        if parameter.name not in words or parameter.kind == "memory":
            continue
        value = words[parameter.name]
        bits = int.from_bytes(value, "little") if isinstance(value, bytes) else int(value)
        for word in range(parameter.nwords):
            offset = parameter.offset + 4 * word
            # A handoff may list both words of an argument, or the first only.
            name = names.get(offset, f"{parameter.name}+{4 * word}")
            found[name] = bits >> 32 * word & 0xFFFFFFFF
    return found
