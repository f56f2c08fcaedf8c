"""ReLU and its gradient on ``activation_f32``: for overlays that lack room for all functions.

Bit for bit torch's; but for the sign of a zero.
"""

from __future__ import annotations

from typing import Any

import torch

from pynq_torch.kernels.activation import plan
from pynq_torch.kernels.operand import Operand
from pynq_torch.kernels.pointwise_walk import walk_of
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.variants import MIXED, NOT_THERE

from .launch import available, launch, operand

__all__: list[str] = []

_KERNEL = "activation_f32"
_MISSING = Declined(
    "no overlay loaded with pynq_torch.load has a unit for ReLU: pynq_torch.load('lenet')",
    missing=True,
)
_DTYPE = Declined("the kernel takes float32")
_EMPTY = Declined("there is nothing to compute")
_SHAPE = Declined("gradient and input differ in shape; torch raises the error on the CPU")


def _strides(x: torch.Tensor, gradient: torch.Tensor | None) -> tuple[int, ...]:
    """Return the strides that torch would give the result: without gaps, and in x's order."""
    lies = tuple((t.shape, t.stride()) for t in (gradient, x) if t is not None)
    found = walk_of(x.shape, lies, "threshold_backward" if gradient is not None else "").strides
    return x.stride() if _lies(x, found) else found


def _lies(x: torch.Tensor, strides: tuple[int, ...]) -> bool:
    own = x.stride()
    return own == strides or all(
        n == 1 or s == t for n, s, t in zip(x.shape, own, strides, strict=True)
    )


def _laid(x: torch.Tensor, strides: tuple[int, ...]) -> Operand:
    """Return the values with all elements in a row in that order: as they lie, or copied."""
    if _lies(x, strides):
        return operand(x)
    return operand(memory.new_strided(tuple(x.shape), strides, torch.float32).copy_(x))


def _run(gradient: torch.Tensor | None, x: torch.Tensor, threshold: float) -> Any:
    slots = available(_KERNEL)
    if not slots:
        return _MISSING
    if not x.numel() or x.numel() >= 1 << 31:
        return _EMPTY
    strides = _strides(x, gradient)
    source = _laid(x, strides)
    result = operand(memory.new_strided(tuple(x.shape), strides, torch.float32))
    reads = [source] if gradient is None else [source, _laid(gradient, strides)]
    slope = None if gradient is None else reads[1]
    runs = plan(slope, source, result, x.numel(), threshold)
    launch(slots, runs, reads=reads, writes=(result,))
    return result.tensor


def relu(self: torch.Tensor) -> Any:
    if self.dtype is not torch.float32:
        return _DTYPE
    return _run(None, self, 0.0)


def threshold_backward(grad_output: torch.Tensor, self: torch.Tensor, threshold: Any) -> Any:
    if grad_output.device.type != "pynq" or self.device.type != "pynq":
        return NOT_THERE
    if grad_output.dtype is not self.dtype:
        return MIXED
    if self.dtype is not torch.float32 or isinstance(threshold, complex):
        return _DTYPE
    if grad_output.shape != self.shape:
        return _SHAPE
    return _run(grad_output, self, float(threshold))
