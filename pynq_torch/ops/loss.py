"""Losses of device "pynq" on ``nll_f32``; cross-entropy is composed of it and of log-softmax.

Single losses and gradients are torch's bit for bit; of images and with weights, gradients of the
mean are within 1 ulp. Sums are kept in double and rounded once, so they are within 1 ulp of the
exact sum of the losses, and a mean within 2.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from pynq_torch.kernels.nll import plan_backward, plan_forward, stranger
from pynq_torch.kernels.operand import Operand
from pynq_torch.kernels.tables.loss import MEAN, NONE, SUM
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.variants import NOT_THERE

from .common import on_cpu, run, units_of
from .launch import ComputeUnit, operand, room

__all__: list[str] = []

_DTYPE = Declined("the kernel takes float32 and classes in int64")
_SHAPE = on_cpu("input and target do not fit each other, or are empty")
_CLASS = on_cpu("a target is no class")
_WEIGHT = on_cpu("the weights are not a float32 for each class")
_IGNORE = Declined("ignore_index has more than 32 bits")
_GRADIENT = on_cpu("the gradient is not of the loss's shape")
_REDUCTION = on_cpu("the reduction is none of torch's")


def _rows(tensor: torch.Tensor, dims: int) -> torch.Tensor:
    """Return images [N, C, H, W], or targets [N, H, W], with all pixels in one dimension."""
    return tensor.flatten(dims - 2) if tensor.dim() == dims else tensor


def _suitable(
    shape: tuple[int, ...],
    target: torch.Tensor,
    weight: torch.Tensor | None,
    reduction: int,
    ignore_index: int,
    images: bool,
) -> Declined | tuple[ComputeUnit, ...]:
    """Return the units, or say why they cannot compute this loss."""
    slots = units_of("nll_f32")
    if isinstance(slots, Declined):
        return slots
    if target.device.type != "pynq" or (weight is not None and weight.device.type != "pynq"):
        return NOT_THERE
    if target.dtype is not torch.int64:
        return _DTYPE
    dims = (4,) if images else (1, 2)
    if len(shape) not in dims or 0 in shape or not target.numel():
        return _SHAPE
    if tuple(target.shape) != ((shape[0], *shape[2:]) if len(shape) > 1 else ()):
        return _SHAPE
    classes = shape[1] if len(shape) > 1 else shape[0]
    if weight is not None and (weight.shape != (classes,) or weight.dtype is not torch.float32):
        return _WEIGHT
    if reduction not in (NONE, MEAN, SUM):
        return _REDUCTION
    if not -(1 << 31) <= ignore_index < 1 << 31:
        return _IGNORE
    if stranger(memory.alias(target), classes, ignore_index) is not None:
        return _CLASS
    return slots


def _weights(weight: torch.Tensor | None) -> Operand | None:
    return None if weight is None else operand(weight.contiguous())


def _reduction(shape: tuple[int, ...], reduction: int) -> int:
    # One sample without a batch is a sum of one loss, for torch as well.
    return SUM if reduction == NONE and len(shape) == 1 else reduction


def loss(images: bool) -> Callable[..., Any]:
    """Return the offer of the loss of a batch, or of every pixel of images."""

    def forward(
        self: torch.Tensor,
        target: torch.Tensor,
        weight: torch.Tensor | None,
        reduction: int,
        ignore_index: int,
    ) -> Any:
        shape = tuple(self.shape)
        slots = _suitable(shape, target, weight, reduction, ignore_index, images)
        if isinstance(slots, Declined):
            return slots
        if self.device.type != "pynq":
            return NOT_THERE
        if self.dtype is not torch.float32:
            return _DTYPE
        reduction = _reduction(shape, reduction)
        source, classes = operand(_rows(self, 4)), operand(_rows(target, 3))
        weights = _weights(weight)
        result = room(tuple(target.shape) if reduction == NONE else (), torch.float32)
        total = room((), torch.float32)
        runs = plan_forward(source, classes, weights, result, total, reduction, ignore_index)
        return run(slots, runs, (source, classes, weights), result, total)

    return forward


def gradient(images: bool) -> Callable[..., Any]:
    """Return the offer of the gradient."""

    def backward(
        grad_output: torch.Tensor,
        self: torch.Tensor,
        target: torch.Tensor,
        weight: torch.Tensor | None,
        reduction: int,
        ignore_index: int,
        total_weight: torch.Tensor,
    ) -> Any:
        shape = tuple(self.shape)
        slots = _suitable(shape, target, weight, reduction, ignore_index, images)
        if isinstance(slots, Declined):
            return slots
        if grad_output.device.type != "pynq" or total_weight.device.type != "pynq":
            return NOT_THERE
        if {grad_output.dtype, self.dtype, total_weight.dtype} != {torch.float32}:
            return _DTYPE
        reduction = _reduction(shape, reduction)
        expected = tuple(target.shape) if reduction == NONE else ()
        if tuple(grad_output.shape) != expected or total_weight.numel() != 1:
            return _GRADIENT
        gradient, classes = operand(_rows(grad_output, 3)), operand(_rows(target, 3))
        weights, total = _weights(weight), operand(total_weight)
        result = room(shape, torch.float32)
        place = Operand(_rows(result.tensor, 4), result.address, result.memory)
        runs = plan_backward(gradient, classes, weights, place, total, reduction, ignore_index)
        return run(slots, runs, (gradient, classes, total, weights), result)

    return backward
