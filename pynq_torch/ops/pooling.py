"""Pooling of device "pynq" on ``pool2d_f32``: maxima, averages and their gradients.

Sums are added up in the order of torch's kernels for the CPU, so all results are bit for bit the
same; but for the sign of a zero, which in torch depends on how the images lie in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from pynq_torch.kernels.pool2d import TOO_WIDE, Window, adaptive, misfit, plan, pooled
from pynq_torch.kernels.tables.pooling import ADAPTIVE, AVERAGE, BACKWARD, COUNT_PAD, MAX
from pynq_torch.torch_device.dispatch import Declined

from .common import on_cpu, run, units_of
from .launch import ComputeUnit, operand
from .results import formatted

__all__: list[str] = []

_SHAPE = on_cpu("the input is no image, or an empty one")
_WINDOW = on_cpu("the windows do not fit the input")
_GRADIENT = on_cpu("the gradient is not of the output's shape")
_INDICES = on_cpu("the indices are no int64")
_WIDE = Declined(TOO_WIDE)
_DIVISOR = Declined("the divisor is 0 or has more than 32 bits")


#: The units, the window, and the shape of the output.
_Fitting = tuple[tuple[ComputeUnit, ...], Window, tuple[int, ...]]


def _suitable(images: torch.Tensor) -> Declined | tuple[ComputeUnit, ...]:
    """Return the units, or say why they cannot pool these images."""
    slots = units_of("pool2d_f32", images)
    if images.dim() not in (3, 4) or not images.numel() or images.numel() >= 1 << 31:
        return slots if isinstance(slots, Declined) else _SHAPE
    return slots


def _pair(values: Sequence[int], default: tuple[int, int] = (1, 1)) -> tuple[int, int]:
    return (values[0], values[-1]) if values else default


def _window(
    images: torch.Tensor,
    kernel: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    divisor: int = 0,
) -> _Fitting | Declined:
    """Return the units, the window and the shape of the output, or what is wrong."""
    slots = _suitable(images)
    if isinstance(slots, Declined):
        return slots
    sizes = (kernel, stride, padding, dilation)
    if max(map(len, sizes)) > 2 or not (kernel and padding and dilation):
        return _WINDOW
    size, shape = _pair(kernel), images.shape
    pairs = (size, _pair(stride, size), _pair(padding), _pair(dilation))
    found = _fitting(*pairs, divisor, shape[-2], shape[-1], ceil_mode)
    return found if isinstance(found, Declined) else (slots, found[0], (*shape[:-2], *found[1]))


@lru_cache(maxsize=512)
def _fitting(
    kernel: tuple[int, int],
    stride: tuple[int, int],
    padding: tuple[int, int],
    dilation: tuple[int, int],
    divisor: int,
    height: int,
    width: int,
    ceil_mode: bool,
) -> Declined | tuple[Window, tuple[int, int]]:
    """Return the window and rows and columns of the output; a network asks for few of them."""
    window = Window(kernel, stride, padding, dilation, divisor)
    if misfit(window):
        return _WINDOW
    out = pooled(window, (height, width), ceil_mode)
    return (window, out) if min(out) > 0 else _WINDOW


def _forward(
    op: int,
    images: torch.Tensor,
    slots: tuple[ComputeUnit, ...],
    window: Window,
    shape: Sequence[int],
) -> Any:
    source = operand(images)
    writes = [formatted(shape, images, torch.float32)]
    if op == MAX:
        writes.append(formatted(shape, images, torch.int64))
    runs = plan(op, source, writes[0], writes[-1], window)
    if not runs:
        return _WIDE
    return run(slots, runs, (source,), *writes)


def _backward(
    op: int,
    slots: tuple[ComputeUnit, ...],
    gradient: torch.Tensor,
    images: torch.Tensor,
    window: Window,
    indices: torch.Tensor | None = None,
) -> Any:
    own, places = operand(gradient), None if indices is None else operand(indices)
    result = formatted(images.shape, images, torch.float32)
    return run(slots, plan(op | BACKWARD, own, result, places, window), (own, places), result)


def _fits(gradient: torch.Tensor, shape: Sequence[int]) -> Declined | None:
    """Say what is wrong with the gradient of an output of this shape."""
    slots = units_of("pool2d_f32", gradient)
    if isinstance(slots, Declined):
        return slots
    return None if tuple(gradient.shape) == tuple(shape) else _GRADIENT


# ---- operators -----------------------------------------------------------------------------------


def max_pool(
    self: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    dilation: Sequence[int] = (1,),
    ceil_mode: bool = False,
) -> Any:
    fitting = _window(self, kernel_size, stride, padding, dilation, ceil_mode)
    return fitting if isinstance(fitting, Declined) else _forward(MAX, self, *fitting)


def max_pool_backward(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    ceil_mode: bool,
    indices: torch.Tensor,
) -> Any:
    fitting = _window(self, kernel_size, stride, padding, dilation, ceil_mode)
    if isinstance(fitting, Declined):
        return fitting
    if declined := _fits(grad_output, fitting[2]):
        return declined
    if indices.device.type != "pynq" or indices.shape != grad_output.shape:
        return _GRADIENT
    if indices.dtype is not torch.int64:
        return _INDICES
    return _backward(MAX, fitting[0], grad_output, self, fitting[1], indices)


def _average(
    divisor_override: int | None, images: torch.Tensor, *sizes: Any
) -> _Fitting | Declined:
    """Return what `_window` gives for averages; its arguments but the dilation and the divisor."""
    if divisor_override is not None and not 0 < abs(divisor_override) < 1 << 31:
        return _DIVISOR
    kernel, stride, padding, ceil_mode = sizes
    divisor = divisor_override or 0
    return _window(images, kernel, stride, padding, (1,), ceil_mode, divisor)


def avg_pool(
    self: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int] = (),
    padding: Sequence[int] = (0,),
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Any:
    fitting = _average(divisor_override, self, kernel_size, stride, padding, ceil_mode)
    if isinstance(fitting, Declined):
        return fitting
    return _forward(AVERAGE | COUNT_PAD if count_include_pad else AVERAGE, self, *fitting)


def avg_pool_backward(
    grad_output: torch.Tensor,
    self: torch.Tensor,
    kernel_size: Sequence[int],
    stride: Sequence[int],
    padding: Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
) -> Any:
    fitting = _average(divisor_override, self, kernel_size, stride, padding, ceil_mode)
    if isinstance(fitting, Declined):
        return fitting
    slots, window, shape = fitting
    op = AVERAGE | COUNT_PAD if count_include_pad else AVERAGE
    return _fits(grad_output, shape) or _backward(op, slots, grad_output, self, window)


def adaptive_avg_pool(self: torch.Tensor, output_size: Sequence[int]) -> Any:
    slots = _suitable(self)
    if isinstance(slots, Declined):
        return slots
    if len(output_size) != 2 or min(output_size) < 1:
        return _WINDOW
    out = (output_size[0], output_size[1])
    window = adaptive((self.shape[-2], self.shape[-1]), out)
    return _forward(ADAPTIVE, self, slots, window, (*self.shape[:-2], *out))


def adaptive_avg_pool_backward(grad_output: torch.Tensor, self: torch.Tensor) -> Any:
    slots = _suitable(self)
    if isinstance(slots, Declined):
        return slots
    shape = (*self.shape[:-2], *grad_output.shape[-2:])
    if not grad_output.numel():
        return _GRADIENT
    if declined := _fits(grad_output, shape):
        return declined
    window = adaptive((self.shape[-2], self.shape[-1]), (shape[-2], shape[-1]))
    return _backward(ADAPTIVE, slots, grad_output, self, window)
