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

from .common import on_cpu, run, units_of
from .launch import operand

__all__: list[str] = []

_KERNEL = "activation_f32"
_EMPTY = Declined("there is nothing to compute")
_SHAPE = on_cpu("gradient and input differ in shape")
_COMPLEX = Declined("the threshold is a complex number; the kernel takes float32")


def _lies(x: torch.Tensor, strides: tuple[int, ...]) -> bool:
    own = x.stride()
    return own == strides or all(
        n == 1 or s == t for n, s, t in zip(x.shape, own, strides, strict=True)
    )


def _laid(x: torch.Tensor, strides: tuple[int, ...]) -> Operand:
    """Return the values with all elements in a row in that order: copied where they are not."""
    if _lies(x, strides):
        return operand(x)
    return operand(memory.new_strided(tuple(x.shape), strides, torch.float32).copy_(x))


def _result(x: torch.Tensor, gradient: torch.Tensor | None = None, threshold: float = 0.0) -> Any:
    slots = units_of(_KERNEL, x, gradient)
    if isinstance(slots, Declined):
        return slots
    if not x.numel() or x.numel() >= 1 << 31:
        return _EMPTY
    # The strides that torch would give the result: without gaps, and in x's order.
    lie = tuple((t.shape, t.stride()) for t in (gradient, x) if t is not None)
    strides = walk_of(x.shape, lie, "threshold_backward" if gradient is not None else "").strides
    strides = x.stride() if _lies(x, strides) else strides
    source = _laid(x, strides)
    slope = None if gradient is None else _laid(gradient, strides)
    result = operand(memory.new_strided(tuple(x.shape), strides, torch.float32))
    runs = plan(slope, source, result, x.numel(), threshold)
    return run(slots, runs, (source, slope), result)


def relu(self: torch.Tensor) -> Any:
    return _result(self)


def threshold_backward(grad_output: torch.Tensor, self: torch.Tensor, threshold: Any) -> Any:
    if isinstance(threshold, complex):
        return _COMPLEX
    if grad_output.shape != self.shape:
        return _SHAPE
    return _result(self, grad_output, float(threshold))
