"""Normalisation of device "pynq" on ``norm_f32``: batches with running statistics, and layers.

Results are within `ROUNDINGS` half ulps of ``(x - mean) * scale * weight``, and one of the result,
of the exact value: closer than torch's kernels for the CPU, which take the mean off in float32
after the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import torch

from pynq_torch.kernels.norm import in_a_row, plan_batch, plan_layer
from pynq_torch.kernels.operand import Operand
from pynq_torch.kernels.tables.normalisation import ROUNDINGS
from pynq_torch.ops.results import formatted
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined

from .common import on_cpu, run, units_of
from .launch import ComputeUnit, operand, room

__all__ = ["ROUNDINGS"]

_SHAPE = Declined("the input and its vectors do not fit each other, or are empty")
_TRAINING = Declined("training takes the statistics of the batch; the kernel takes running ones")
_STATISTICS = on_cpu("there are no running statistics")


def _units(x: torch.Tensor, *vectors: torch.Tensor | None) -> tuple[ComputeUnit, ...] | Declined:
    slots = units_of("norm_f32", x, *vectors)
    return _SHAPE if not x.numel() or x.numel() >= 1 << 31 else slots


def _vector(values: torch.Tensor | None) -> Operand | None:
    return None if values is None else operand(values.contiguous())


def batch_norm(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    training: bool,
    momentum: float,
    eps: float,
) -> Any:
    vectors = (running_mean, running_var, weight, bias)
    slots = _units(input, *vectors)
    if isinstance(slots, Declined):
        return slots
    if training:
        return _TRAINING
    if running_mean is None or running_var is None:
        return _STATISTICS
    if input.dim() < 2 or any(v is not None and v.shape != input.shape[1:2] for v in vectors):
        return _SHAPE
    source, scale, shift = operand(input), _vector(weight), _vector(bias)
    mean, variance = operand(running_mean.contiguous()), operand(running_var.contiguous())
    result = formatted(input.shape, input, torch.float32)
    runs = plan_batch(source, mean, variance, scale, shift, result, eps)
    run(slots, runs, (source, mean, variance, scale, shift), result)
    # What training would keep for the gradient.
    return result.tensor, memory.new((0,), torch.float32), memory.new((0,), torch.float32)


def batch_norm_without_training(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    running_mean: torch.Tensor,
    running_var: torch.Tensor,
    momentum: float,
    eps: float,
) -> Any:
    return batch_norm(input, weight, bias, running_mean, running_var, False, momentum, eps)


def layer_norm(
    input: torch.Tensor,
    normalized_shape: Sequence[int],
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    eps: float,
) -> Any:
    slots = _units(input, weight, bias)
    if isinstance(slots, Declined):
        return slots
    row, dims = tuple(normalized_shape), len(normalized_shape)
    if not dims or tuple(input.shape[-dims:]) != row or prod(row) >= 1 << 31:
        return _SHAPE
    if any(v is not None and tuple(v.shape) != row for v in (weight, bias)):
        return _SHAPE
    source, scale, shift = operand(input), _vector(weight), _vector(bias)
    if not in_a_row(source, dims):
        source = operand(input.contiguous())
    result = room(tuple(input.shape), torch.float32)
    outer = (*input.shape[:-dims], *(1,) * dims)
    mean, factor = room(outer, torch.float32), room(outer, torch.float32)
    runs = plan_layer(source, dims, scale, shift, result, mean, factor, eps)
    return run(slots, runs, (source, scale, shift), result, mean, factor)
