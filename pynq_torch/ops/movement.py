"""Copies of device "pynq" on ``move_32``: float32 and int32 tensors, bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pynq_torch.kernels import walks
from pynq_torch.kernels.operand import Operand
from pynq_torch.kernels.strided import broadcast_strides
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.structure import room_of_clone
from pynq_torch.torch_device.variants import NOT_THERE, overlaps

from .common import on_cpu, run, units_of
from .launch import available, operand, room
from .results import channels_last

__all__ = ["DIM", "EMPTY", "move", "words"]

EMPTY = Declined("there is nothing to move")
DIM = on_cpu("there is no such dimension")
_OVERLAP = Declined("the operands share memory, and the order of the copy would matter")
_CHANNELS_LAST = Declined("the result is channels_last, which move_32 does not write for cat")


def words(*tensors: torch.Tensor) -> Declined | None:
    """Say why ``move_32`` cannot move these; ``None`` if it can."""
    found = units_of("move_32", *tensors, dtypes=(torch.float32, torch.int32))
    return found if isinstance(found, Declined) else None


def move(runs: Sequence[Sequence[int]], reads: Sequence[Operand], result: Operand) -> Any:
    """Do runs of ``move_32``; return the tensor that they write."""
    return run(available("move_32"), runs, reads, result)


# ---- copies --------------------------------------------------------------------------------------


def clone(self: torch.Tensor, *, memory_format: Any = None) -> Any:
    declined = words(self) or (not self.numel() and EMPTY)
    return declined or _copied(self, operand(room_of_clone(self, memory_format)))


def _copied(source: torch.Tensor, target: Operand) -> Any:
    """Copy a tensor, repeated where it is smaller, into a target; return that."""
    own = operand(source)
    steps = broadcast_strides(own.shape, own.strides, target.shape)
    runs = walks.copy_runs(target.shape, own.address, steps, target.address, target.strides)
    return move(runs, (own,), target)


def copy_(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> Any:
    declined = words(self, src) or (not self.numel() and EMPTY)
    if declined:
        return declined
    if self.untyped_storage().data_ptr() == src.untyped_storage().data_ptr():
        return _OVERLAP
    # A target that is expanded is an error of torch's, and one that is negated lazily holds others.
    if overlaps(self) or self.is_neg():
        return _OVERLAP
    missing = self.dim() - src.dim()
    pairs = zip(src.shape, self.shape[max(missing, 0) :], strict=False)
    if missing < 0 or any(n not in (1, size) for n, size in pairs):
        return DIM
    target = operand(self)
    if target.tensor is not self:
        return NOT_THERE
    _copied(src, target)
    return self


def cat(tensors: Sequence[torch.Tensor], dim: int = 0) -> Any:
    # torch leaves out empty vectors, whatever the other shapes.
    parts = [t for t in tensors if t.shape != (0,)]
    if not parts:
        return EMPTY
    declined = words(*tensors)
    if declined is not None:
        return declined
    first = parts[0]
    if not -first.dim() <= dim < first.dim():
        return DIM
    dim %= first.dim()
    others = [(*part.shape[:dim], *part.shape[dim + 1 :]) for part in parts]
    if any(part.dim() != first.dim() for part in parts) or len(set(others)) > 1:
        return DIM
    total = sum(part.shape[dim] for part in parts)
    shape = (*first.shape[:dim], total, *first.shape[dim + 1 :])
    if all(channels_last(part.shape, part.stride()) for part in parts):
        return _CHANNELS_LAST
    if 0 in shape:
        return EMPTY
    result = room(shape, first.dtype)
    reads, runs, address = [], [], result.address
    for part in parts:
        if part.numel():
            own = operand(part)
            runs += walks.copy_runs(own.shape, own.address, own.strides, address, result.strides)
            reads.append(own)
        address += part.shape[dim] * result.strides[dim] * result.itemsize
    return move(runs, reads, result)


def stack(tensors: Sequence[torch.Tensor], dim: int = 0) -> Any:
    if not tensors or not all(t.shape == tensors[0].shape for t in tensors):
        return DIM
    shape, count = tensors[0].shape, tensors[0].dim()
    if not -count - 1 <= dim <= count:
        return DIM
    dim %= count + 1
    if dim == count:
        return cat([t.unsqueeze(dim) for t in tensors], dim)
    # As torch: along a dimension that is there, so that the layout of the parts counts.
    joined = cat(tensors, dim)
    if isinstance(joined, Declined):
        return joined
    return joined.view(*shape[:dim], len(tensors), *shape[dim:])
