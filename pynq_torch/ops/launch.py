"""The compute units of the loaded overlay, and running their kernels on tensors of device "pynq".

`available` says which compute units of a kernel there are, `launch` gives them one or more runs.
Operands are tensors on device "pynq" (`operand`); what a kernel writes is new memory, so that a run
that fails leaves the tensors of the program as they were.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

import torch

from pynq_torch.kernels import Gemm, MatrixMult
from pynq_torch.kernels import launch as launcher
from pynq_torch.kernels.launch import ComputeUnit
from pynq_torch.kernels.operand import Operand
from pynq_torch.overlay import overlay_in_use
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.record import transfer

__all__ = [
    "ComputeUnit",
    "Units",
    "available",
    "launch",
    "operand",
    "placed",
    "room",
    "units",
]


class Units:
    """The compute units of an overlay.

    Parameters
    ----------
    overlay : Overlay or None
        Loaded by `pynq_torch.load`.

    Attributes
    ----------
    by_kernel : dict of str to tuple of ComputeUnit
        By the name of their kernel.
    gemms, tiles : list of ComputeUnit
        Those that multiply int8 matrices: with sizes in registers, and of fixed shape; `all` has
        both.
    """

    def __init__(self, overlay: Any) -> None:
        self.overlay = overlay
        self.device = overlay.device if overlay is not None else None
        self.by_kernel: dict[str, tuple[ComputeUnit, ...]] = {}
        found = [ComputeUnit(d) for d in (overlay.kernels.values() if overlay is not None else ())]
        for unit in found:
            name = unit.driver.kernel_name
            self.by_kernel[name] = (*self.by_kernel.get(name, ()), unit)
        self.gemms = [u for u in found if isinstance(u.driver, Gemm)]
        self.tiles = [u for u in found if isinstance(u.driver, MatrixMult)]
        self.all = (*self.gemms, *self.tiles)

    def __bool__(self) -> bool:
        """Whether any of them multiplies int8 matrices."""
        return bool(self.all)


_lock = threading.Lock()
_found = Units(None)


def units() -> Units:
    """Return the units of the overlay in the PL; empty where none is loaded."""
    global _found
    overlay = overlay_in_use()
    if overlay is not _found.overlay:
        with _lock:
            if overlay is not _found.overlay:
                _found = Units(overlay)
    return _found


def available(kernel: str) -> tuple[ComputeUnit, ...]:
    """Return the compute units of a kernel in the loaded overlay; empty where there is none.

    Parameters
    ----------
    kernel : str
        Its VLNV name, e.g. ``"unary_f32"``.
    """
    return units().by_kernel.get(kernel, ())


def operand(tensor: torch.Tensor) -> Operand:
    """Return a tensor on device "pynq" for a kernel, as it is in memory; strides stay.

    It is copied only where its memory is not on the board of the loaded overlay, or where what it
    shows is not what is in memory (lazy negation).
    """
    # Not units(): `available` has just looked, and a look costs as much as the rest of this.
    return Operand(*placed(tensor, _found.device, copy=tensor.is_neg()))


def placed(tensor: torch.Tensor, device: Any, *, copy: bool = False) -> tuple[Any, int, Any]:
    """Return a tensor on the board of `device`, its physical address and its memory."""
    held = memory.block_of(tensor).memory
    if copy or held is None or held.device is not device:
        with transfer():
            copied = memory.new(tensor.shape, tensor.dtype)
            memory.block_of(copied).cpu.copy_(memory.alias(tensor))
        tensor, held = copied, memory.held(copied)
    return tensor, held.physical + int(tensor.storage_offset()) * tensor.itemsize, held


def room(shape: Sequence[int], dtype: torch.dtype) -> Operand:
    """Return an uninitialised result: a new contiguous tensor on device "pynq"."""
    return operand(memory.new(shape, dtype))


def launch(
    units: Sequence[ComputeUnit],
    runs: Sequence[Sequence[int]],
    *,
    reads: Sequence[Operand] = (),
    writes: Sequence[Operand] = (),
    timeout_s: float | None = None,
) -> None:
    """Do runs of one kernel on its compute units; see `pynq_torch.kernels.launch.launch`."""
    launcher.launch(units, runs, reads=reads, writes=writes, timeout_s=timeout_s)
    for o in writes:
        memory.note_write(o.tensor)
