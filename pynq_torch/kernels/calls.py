"""Runs of compute units, as drivers publish them on `pynq_torch.events.runs`."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pynq_torch.events import Array, KernelCall, runs
from pynq_torch.timing import where_measured

from .job import ARGUMENT, job_of

if TYPE_CHECKING:
    from .base import Kernel

__all__ = ["begun", "ended", "prepare"]


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
    places = [place for place in map(_array, owners) if place is not None]
    told: dict[str, Any] = {name: _describe(value, places) for name, value in values.items()}
    if kernel.job:
        told |= job_of(kernel.job, values[ARGUMENT], owners)
    return KernelCall(
        kernel.cu,
        kernel.kernel_name,
        told,
        _registers(kernel, words),
        threading.current_thread().name,
        where=where_measured("pl", kernel.device),
    )


def begun(call: KernelCall) -> KernelCall:
    """Publish that AP_START is about to be written; return `call`."""
    call.start = time.perf_counter()
    runs.publish(call)
    return call


def ended(call: KernelCall, error: str = "") -> None:
    """Publish that a run is over, or was given up."""
    call.seconds = time.perf_counter() - call.start
    call.error = error
    runs.publish(call)


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
