"""Convolutions of device "pynq" in float32, forward and backward, on ``conv2d_f32``.

Forward, ``depthwise_f32`` does those with a channel a group. They come after those in int8 (`conv`,
`conv_direct`). An element is off by at most ``(K + 2) * 2**-23`` times the sum of the magnitudes of
its K products. Pixels beside the image give no products.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import torch

from pynq_torch.kernels.convolution import plan_forward, plan_grad_input, plan_grad_weight
from pynq_torch.kernels.job import Planned
from pynq_torch.kernels.launch import ComputeUnit
from pynq_torch.kernels.operand import Operand
from pynq_torch.kernels.windows import Window
from pynq_torch.torch_device.dispatch import Declined

from .launch import available, launch, operand
from .linear import vector
from .planes import (
    MISSING,
    NOT_EACH,
    OPERANDS,
    SIZES,
    Sizes,
    beside,
    plane,
    room_for,
    unit_for,
    unsuitable,
    window_of,
)
from .units import timeout_of

__all__ = ["DEPTHWISE", "KERNEL"]

#: Their VLNV names.
KERNEL, DEPTHWISE = "conv2d_f32", "depthwise_f32"


def convolution(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
) -> Any:
    sizes = (stride, padding, dilation, groups, output_padding)
    declined = unsuitable(torch.float32, input, weight)
    window = declined or window_of(input.dim(), *sizes, transposed=transposed)
    if isinstance(window, Declined):
        return window
    x, w = plane(input), plane(weight)
    inner = w.shape[0] if transposed else w.shape[1] * groups
    outs = w.shape[1] * groups if transposed else w.shape[0]
    if inner != x.shape[1] or w.shape[0] % groups:
        return SIZES
    declined = _misfit(bias, outs)
    if declined:
        return declined
    offset = None if bias is None else operand(vector(bias) if bias.stride(0) != 1 else bias)
    size = _size(window, x, w, input.dim(), output_padding, transposed)
    if min(size) < 1:
        return SIZES
    slots, tile = (available(KERNEL), None) if transposed else unit_for("f32", window, w, size)
    if not slots:
        return NOT_EACH if available(DEPTHWISE) else MISSING
    result, place = room_for((x.shape[0], outs, *size), input, weight)
    if transposed:
        runs, job = plan_grad_input(x, w, place, window, offset)
    else:
        runs, job = plan_forward(x, w, place, window, offset, tile=tile)
    work = result.numel() * w.tensor.numel() // w.shape[0]
    reads = [o for o in (x, w, offset, job) if o is not None]
    launch(slots, runs, reads=reads, writes=[place], timeout_s=timeout_of(work))
    return result


def _misfit(bias: torch.Tensor | None, channels: int) -> Declined | None:
    if bias is None:
        return None
    if bias.dtype is not torch.float32 or bias.device.type != "pynq":
        return OPERANDS
    return None if bias.shape == (channels,) else SIZES


def _size(
    window: Window, x: Operand, w: Operand, dims: int, output_padding: Sizes, transposed: bool
) -> tuple[int, int]:
    """Return the rows and columns of the output."""
    if not transposed:
        return window.out_size(x.shape[2:], w.shape[2:])  # type: ignore[arg-type]
    more = beside(output_padding, dims == 3, 0)
    return window.transposed_size(x.shape[2:], w.shape[2:], more)  # type: ignore[arg-type]


def _gradient(
    slots: Sequence[ComputeUnit],
    plan: Callable[..., Planned],
    operands: tuple[Operand, Operand],
    shape: Sizes,
    like: torch.Tensor,
    *,
    window: Window,
    timeout_s: float,
) -> torch.Tensor:
    """Return the gradient that the run of `plan` computes from two operands."""
    result, place = room_for(shape, like)
    runs, job = plan(*operands, place, window)
    launch(slots, runs, reads=(*operands, job), writes=[place], timeout_s=timeout_s)
    return result


def convolution_backward(
    grad_output: torch.Tensor,
    input: torch.Tensor,
    weight: torch.Tensor,
    bias_sizes: Sizes | None,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    transposed: bool,
    output_padding: Sizes,
    groups: int,
    output_mask: Sequence[bool],
) -> Any:
    slots = available(KERNEL)
    if not slots:
        return MISSING
    sizes = (stride, padding, dilation, groups, output_padding)
    declined = unsuitable(torch.float32, grad_output, input, weight)
    window = declined or window_of(input.dim(), *sizes, transposed=transposed)
    if isinstance(window, Declined):
        return window
    grad, x, w = map(plane, (grad_output, input, weight))
    # A transposed convolution is the gradient of one from its result to its input.
    wide, narrow = (grad, x) if transposed else (x, grad)
    size = _size(window, x, w, input.dim(), output_padding, transposed)
    fits = (narrow.shape[1], wide.shape[1]) == (w.shape[0], w.shape[1] * groups)
    if (grad.shape[2:], grad.shape[0]) != (size, x.shape[0]) or not fits or w.shape[0] % groups:
        return SIZES
    timeout_s = timeout_of(grad_output.numel() * weight.numel() // weight.shape[0])
    found: list[torch.Tensor | None] = [None] * 3
    compute = partial(_gradient, slots, window=window, timeout_s=timeout_s)
    if output_mask[0]:
        plan = plan_forward if transposed else plan_grad_input
        found[0] = compute(plan, (grad, w), x.shape, input)
    if output_mask[1]:
        found[1] = compute(plan_grad_weight, (wide, narrow), w.shape, weight)
    if output_mask[2]:
        found[2] = grad_output.sum([d for d in range(input.dim()) if d != 1])
    return tuple(found)
