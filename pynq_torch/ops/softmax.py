"""softmax, log_softmax, logsumexp and the gradients of the first two on ``softmax_f32``.

float32 of any shape and strides. `kernels.tables.reductions` has the bounds of the error.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from pynq_torch.kernels.softmax import softmax_runs
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.variants import MIXED

from .common import on_cpu, run, units_of
from .launch import operand, room

__all__: list[str] = []

_KERNEL = "softmax_f32"
_EMPTY = Declined("there is nothing to add up")
_DIM = on_cpu("there is no such dimension")
_DIMS = on_cpu("no dimension, or one that is named twice")
_SHAPES = on_cpu("gradient and result differ in shape")
_HALF = Declined("the conversion of float16 to float32 on the way is the CPU's")


def _do(
    op: str,
    x: torch.Tensor,
    dim: int,
    result: torch.Tensor | None = None,
    shape: tuple[int, ...] | None = None,
) -> Any:
    slots = units_of(_KERNEL, x, result)
    if isinstance(slots, Declined):
        return slots
    count = x.dim() or 1
    if not -count <= dim < count:
        return _DIM
    if not x.numel():
        return _EMPTY
    if result is not None and result.shape != x.shape:
        return _SHAPES
    own, forward = operand(x), None if result is None else operand(result)
    made = room(tuple(x.shape) if shape is None else shape, torch.float32)
    return run(slots, softmax_runs(op, own, forward, made, dim % count), (own, forward), made)


def forward(op: str) -> Callable[..., Any]:
    def softmax(self: torch.Tensor, dim: int, half_to_float: bool) -> Any:
        return _HALF if half_to_float else _do(op, self, dim)

    return softmax


def backward(op: str) -> Callable[..., Any]:
    def gradient(
        grad_output: torch.Tensor, output: torch.Tensor, dim: int, input_dtype: torch.dtype
    ) -> Any:
        return _do(op, grad_output, dim, output) if input_dtype is torch.float32 else MIXED

    return gradient


def with_dtype(op: str) -> Callable[..., Any]:
    def softmax(self: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
        return _do(op, self, dim) if dtype in (None, torch.float32) else MIXED

    return softmax


def logsumexp(self: torch.Tensor, dim: Sequence[int], keepdim: bool = False) -> Any:
    count = self.dim() or 1
    if any(not -count <= d < count for d in dim):
        return _DIM
    dims = sorted({d % count for d in dim})
    if not dims or len(dims) < len(dim):
        return _DIMS
    x = self
    if len(dims) > 1:
        slots = units_of(_KERNEL, self)
        if isinstance(slots, Declined):
            return slots
        # One row of several dimensions: as they are where they follow each other, else copied.
        x = self.permute(*(d for d in range(count) if d not in dims), *dims)
        x = x.flatten(count - len(dims))
    shape = tuple(
        1 if d in dims else n for d, n in enumerate(self.shape) if keepdim or d not in dims
    )
    return _do("logsumexp", x, dims[0] if len(dims) == 1 else -1, shape=shape)
