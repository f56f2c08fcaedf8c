"""Gathers and scatter-adds of device "pynq" on ``move_32``.

Indices are looked at by the CPU before the start, since the kernel does not check them: a call with
one out of range goes to the CPU, whose error torch's users know. Sums are in float32, one rounding
for each addition, in the order in which the index names them: that of the CPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pynq_torch.kernels import walks
from pynq_torch.kernels.pointwise_walk import walk_of
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.variants import NOT_THERE

from .common import on_cpu
from .launch import operand, room
from .movement import DIM, EMPTY, move, words

__all__: list[str] = []

_INDEX = on_cpu("an index is out of range")
_INDEX_KIND = on_cpu("the index is no int64 or int32 tensor that fits")
_FREQUENCY = Declined("move_32 does not count how often an index comes (scale_grad_by_freq)")
_LOOPS = Declined("the operands lie in memory in more dimensions than move_32 has loops")
_ALPHA = Declined("alpha is not 1: move_32 adds what there is")
_ON_CPU = Declined("the index is on the CPU")
_SEVERAL = Declined("move_32 takes one index at a time")
_STRIDES = Declined("what is indexed is not contiguous")
_INTEGERS = Declined("move_32 adds in float32 only")


def _index(index: torch.Tensor, size: int) -> Declined | None:
    """Say why an index is none for a dimension of that size; ``None`` if it is one."""
    if index.device.type != "pynq":
        return NOT_THERE
    if index.dtype not in (torch.int64, torch.int32):
        return _INDEX_KIND
    if not index.numel():
        return EMPTY
    low, high = memory.alias(index).aminmax()
    return _INDEX if int(low) < 0 or int(high) >= size else None


def _floats(*tensors: torch.Tensor) -> Declined | None:
    """Say why ``move_32`` cannot add these up."""
    return words(*tensors) or (None if tensors[0].dtype is torch.float32 else _INTEGERS)


def embedding(
    weight: torch.Tensor,
    indices: torch.Tensor,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    declined = words(weight) or (weight.dim() != 2 and DIM) or _index(indices, weight.shape[0])
    if declined:
        return declined
    return _selected(weight, 0, indices, (*indices.shape, weight.shape[1]))


def _selected(
    source: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    shape: tuple[int, ...],
    strides: Sequence[int] | None = None,
) -> Any:
    """Return what an index chooses along a dimension; without strides, row-major."""
    if 0 in shape:
        return EMPTY
    own, chosen = operand(source), operand(index)
    made = strides and operand(memory.new_strided(shape, strides, source.dtype))
    result = made or room(shape, source.dtype)
    return move(walks.select_runs(own, dim, chosen, result, shape), (own, chosen), result)


def embedding_dense_backward(
    grad_output: torch.Tensor,
    indices: torch.Tensor,
    num_weights: int,
    padding_idx: int,
    scale_grad_by_freq: bool,
) -> Any:
    declined = (
        _floats(grad_output) or (scale_grad_by_freq and _FREQUENCY) or _index(indices, num_weights)
    )
    if declined:
        return declined
    if grad_output.shape[:-1] != indices.shape or not grad_output.shape[-1]:
        return _INDEX_KIND
    result = room((int(num_weights), grad_output.shape[-1]), torch.float32)
    memory.block_of(result.tensor).cpu.zero_()
    own, chosen = operand(grad_output), operand(indices)
    runs = walks.embedding_gradient_runs(own, chosen, result, own.shape, int(padding_idx))
    return move(runs, (own, chosen), result) if runs else _LOOPS


def index_select(self: torch.Tensor, dim: int, index: torch.Tensor) -> Any:
    missing = not (-self.dim() <= dim < self.dim() and index.dim() <= 1)
    declined = words(self) or (missing and DIM) or _index(index, self.shape[dim])
    if declined:
        return declined
    dim %= self.dim()
    return _selected(self, dim, index, (*self.shape[:dim], index.numel(), *self.shape[dim + 1 :]))


def index_tensor(self: torch.Tensor, indices: Sequence[torch.Tensor | None]) -> Any:
    given = [(dim, index) for dim, index in enumerate(indices) if index is not None]
    if len(given) != 1 or given[0][0] >= self.dim():
        return _SEVERAL
    dim, index = given[0]
    if index.device.type != "pynq":
        return _ON_CPU
    declined = words(self) or _index(index, self.shape[dim])
    if declined is not None:
        return declined
    shape = (*self.shape[:dim], *index.shape, *self.shape[dim + 1 :])
    if 0 not in shape and not self.is_contiguous():
        return _STRIDES  # torch gives the result strides after those of the tensor
    strides = None if index.is_contiguous() else _turned(self, dim, index, shape)
    return _selected(self, dim, index, shape, strides)


def _turned(
    self: torch.Tensor, dim: int, index: torch.Tensor, shape: tuple[int, ...]
) -> tuple[int, ...]:
    """Return the strides of what an index chooses: its dimensions lie as those of the index do."""
    before, steps = self.stride()[:dim], (0,) * index.dim()
    chosen = index.reshape((*(1,) * dim, *index.shape, *(1,) * (self.dim() - dim - 1)))
    kept = (shape, (*before, *steps, *self.stride()[dim + 1 :]))
    return walk_of(shape, (kept, (chosen.shape, chosen.stride()))).strides


def gather(self: torch.Tensor, dim: int, index: torch.Tensor, *, sparse_grad: bool = False) -> Any:
    declined = words(self) or _along(self, dim, index)
    if declined is not None:
        return declined
    dim %= self.dim()
    own, chosen = operand(self), operand(index)
    result = room(tuple(index.shape), self.dtype)
    runs = walks.gather_runs(own, dim, chosen, result, result.shape)
    return move(runs, (own, chosen), result)


def _along(self: torch.Tensor, dim: int, index: torch.Tensor) -> Declined | None:
    """Say why an index of the result's shape does not fit; ``None`` if it does."""
    if not (self.dim() and index.dim() == self.dim() and -self.dim() <= dim < self.dim()):
        return DIM
    dim %= self.dim()
    pairs = enumerate(zip(index.shape, self.shape, strict=True))
    if index.dtype is not torch.int64 or any(n > size for i, (n, size) in pairs if i != dim):
        return _INDEX_KIND
    return _index(index, self.shape[dim])


def scatter_add(self: torch.Tensor, dim: int, index: torch.Tensor, src: torch.Tensor) -> Any:
    declined = _floats(self, src) or _along(self, dim, index)
    if declined:
        return declined
    sizes = zip(index.shape, src.shape, strict=False)
    if src.dim() != index.dim() or any(n > size for n, size in sizes):
        return _INDEX_KIND
    return _added(self, dim, index, src, tuple(index.shape), rows=False)


def index_add(
    self: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    source: torch.Tensor,
    *,
    alpha: Any = 1,
) -> Any:
    missing = not (-self.dim() <= dim < self.dim() and index.dim() == 1)
    declined = (
        _floats(self, source)
        or ((type(alpha) is bool or alpha != 1) and _ALPHA)
        or (missing and DIM)
        or _index(index, self.shape[dim])
    )
    if declined:
        return declined
    dim %= self.dim()
    if source.shape != (*self.shape[:dim], index.shape[0], *self.shape[dim + 1 :]):
        return _INDEX_KIND
    return _added(self, dim, index, source, tuple(source.shape), rows=True)


def _added(
    self: torch.Tensor,
    dim: int,
    index: torch.Tensor,
    source: torch.Tensor,
    shape: tuple[int, ...],
    *,
    rows: bool,
) -> Any:
    if 0 in shape:
        return EMPTY
    result = room(tuple(self.shape), torch.float32)
    memory.block_of(result.tensor).cpu.copy_(memory.alias(self))
    own, chosen = operand(source), operand(index)
    runs = walks.scatter_runs(result, dim % self.dim(), chosen, own, shape, rows=rows)
    return move(runs, (own, chosen), result) if runs else _LOOPS
