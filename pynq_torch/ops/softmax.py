"""softmax, log_softmax, logsumexp and the gradients of the first two on ``softmax_f32``.

float32 of any shape and strides. `families.reductions` has the bounds of the error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from pynq_torch.kernels.operand import Operand
from pynq_torch.kernels.softmax import softmax_runs
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.variants import MIXED

from . import launch

__all__ = ["NO_UNIT"]

NO_UNIT = Declined(
    "no overlay loaded with pynq_torch.load has a unit for softmax: pynq_torch.load('reductions')",
    missing=True,
)
_EMPTY = Declined("there is nothing to add up")
_DIM = Declined("there is no such dimension; torch raises the error on the CPU")
_NOT_HERE = Declined("an operand is not on device 'pynq'; torch raises the error on the CPU")


def _declined(x: torch.Tensor, dim: int) -> Declined | None:
    """Say why `softmax_f32` cannot take a tensor, ``None`` if it can."""
    if x.dtype is not torch.float32:
        return Declined(f"softmax_f32 takes float32, found {str(x.dtype).removeprefix('torch.')}")
    if x.device.type != "pynq":
        return _NOT_HERE
    count = x.dim() or 1
    if not -count <= dim < count:
        return _DIM
    return _EMPTY if not x.numel() else None


def _do(
    op: str,
    x: torch.Tensor,
    dim: int,
    result: torch.Tensor | None = None,
    shape: tuple[int, ...] | None = None,
) -> Any:
    slots = launch.available("softmax_f32")
    if not slots:
        return NO_UNIT
    declined = _declined(x, dim)
    if declined is not None:
        return declined
    if result is not None and (result.dtype is not x.dtype or result.device != x.device):
        return MIXED
    if result is not None and result.shape != x.shape:
        return Declined("gradient and result differ in shape; torch raises the error on the CPU")
    dim = dim % (x.dim() or 1)
    reads: list[Operand] = [launch.operand(x)]
    if result is not None:
        reads.append(launch.operand(result))
    room = launch.room(tuple(x.shape) if shape is None else shape, torch.float32)
    runs = softmax_runs(op, reads[0], reads[-1] if result is not None else None, room, dim)
    launch.launch(slots, runs, reads=reads, writes=[room])
    return room.tensor


def forward(op: str) -> Any:
    def run(self: torch.Tensor, dim: int, half_to_float: bool) -> Any:
        if half_to_float:
            return Declined("the conversion of float16 to float32 on the way is the CPU's")
        return _do(op, self, dim)

    return run


def backward(op: str) -> Any:
    def run(
        grad_output: torch.Tensor, output: torch.Tensor, dim: int, input_dtype: torch.dtype
    ) -> Any:
        if input_dtype is not torch.float32:
            return MIXED
        return _do(op, grad_output, dim, output)

    return run


def with_dtype(op: str) -> Any:
    def run(self: torch.Tensor, dim: int, dtype: torch.dtype | None = None) -> Any:
        if dtype not in (None, torch.float32):
            return MIXED
        return _do(op, self, dim)

    return run


def logsumexp(self: torch.Tensor, dim: Sequence[int], keepdim: bool = False) -> Any:
    count = self.dim() or 1
    if any(not -count <= d < count for d in dim):
        return _DIM
    dims = sorted({d % count for d in dim})
    if not dims or len(dims) < len(dim):
        return Declined(
            "no dimension, or one that is named twice; torch raises the error on the CPU"
        )
    x = self
    if len(dims) > 1:
        if not launch.available("softmax_f32"):
            return NO_UNIT
        declined = _declined(self, 0)
        if declined is not None:
            return declined
        # One row of several dimensions: as they lie where they follow each other, else copied.
        x = self.permute(*(d for d in range(count) if d not in dims), *dims)
        x = x.flatten(count - len(dims))
    shape = tuple(
        1 if d in dims else n for d, n in enumerate(self.shape) if keepdim or d not in dims
    )
    return _do("logsumexp", x, dims[0] if len(dims) == 1 else -1, shape=shape)
