"""What the convolutions of device "pynq" share: shapes, layouts, and which unit does them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import torch

from pynq_torch.kernels.operand import Operand
from pynq_torch.kernels.windows import Window
from pynq_torch.models.tiling import Tiling, depthwise_tiling
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined

from .launch import ComputeUnit, available, operand, room

__all__ = [
    "MISSING",
    "NOT_EACH",
    "OPERANDS",
    "SIZES",
    "Sizes",
    "beside",
    "plane",
    "room_for",
    "unit_for",
    "unsuitable",
    "window_of",
]

MISSING = Declined(
    "no overlay loaded with pynq_torch.load has a unit that multiplies matrices: "
    "pynq_torch.load('gemm') for int8, or pynq_torch.load('convolution')",
    missing=True,
)
OPERANDS = Declined("the operands differ in device or dtype; torch raises the error on the CPU")
SIZES = Declined(
    "the sizes do not fit, or there is nothing to convolve; torch raises the error on the CPU"
)
#: Where only the depthwise kernel is there, and the convolution is another.
NOT_EACH = Declined("the overlay's unit convolves each channel by itself only")
_DIMENSIONS = Declined("only convolutions over one or two dimensions")
_LARGE = Declined("a tensor of 2**31 elements or more is beyond the kernel's registers")
Sizes = Sequence[int]


def beside(values: Sizes, line: bool, lone: int) -> tuple[int, int]:
    """Return (vertical, horizontal); a convolution over a line gets `lone` for its one row."""
    if line:
        return lone, values[0]
    return (values[0], values[0]) if len(values) == 1 else (values[0], values[1])


def window_of(
    dims: int,
    stride: Sizes,
    padding: Sizes,
    dilation: Sizes,
    groups: int,
    output_padding: Sizes,
    *,
    transposed: bool = False,
) -> Window | Declined:
    """Return how a weight moves over an image of `dims` dimensions, the batch counted.

    `SIZES` where torch would refuse one of the arguments.
    """
    sizes = (tuple(stride), tuple(padding), tuple(dilation), tuple(output_padding))
    return _window(dims == 3, *sizes, groups, transposed)


@lru_cache(maxsize=256)
def _window(
    line: bool,
    stride: Any,
    padding: Any,
    dilation: Any,
    output_padding: Any,
    groups: int,
    transposed: bool,
) -> Window | Declined:
    given = (stride, padding, dilation, output_padding)
    if any(len(v) not in ((1,) if line else (1, 2)) for v in given):
        return SIZES
    window = Window(
        beside(stride, line, 1), beside(padding, line, 0), beside(dilation, line, 1), groups
    )
    more = beside(output_padding, line, 0)
    bad = min(*window.stride, *window.dilation, groups) < 1 or min(*window.padding, *more) < 0
    if transposed:
        pairs = zip(more, window.stride, window.dilation, strict=True)
        bad = bad or any(n >= max(s, d) for n, s, d in pairs)
    return SIZES if bad else window


def unsuitable(dtype: torch.dtype, *tensors: torch.Tensor) -> Declined | None:
    """Say why a kernel for `dtype` cannot convolve these, ``None`` if it can."""
    dims = tensors[0].dim()
    for tensor in tensors:
        if tensor.dtype is not dtype:
            same = all(t.dtype is tensors[0].dtype for t in tensors)
            name = str(tensors[0].dtype).removeprefix("torch.")
            return Declined(f"no unit of the overlay convolves {name}") if same else OPERANDS
        if tensor.device.type != "pynq":
            return OPERANDS
        if tensor.dim() != dims or dims not in (3, 4):
            return _DIMENSIONS
        count = tensor.numel()
        if not 0 < count < 1 << 31:
            return _LARGE if count else SIZES
    return None


def unit_for(
    kind: str, window: Window, weight: Operand, size: tuple[int, int]
) -> tuple[tuple[ComputeUnit, ...], Tiling | None]:
    """Return the units for a convolution forward, and the tiles where they need their own.

    Parameters
    ----------
    kind : str
        ``"f32"`` or ``"i8"``.
    window : Window
        Stride, padding, dilation and groups.
    weight : Operand
        [OC, C / groups, kh, kw].
    size : tuple of int
        Rows and columns of the result.
    """
    _, inner, kh, kw = weight.shape
    if inner == 1 and window.groups > 1:
        units = available(f"depthwise_{kind}")
        tile = depthwise_tiling(size, (kh, kw), window.stride, window.dilation) if units else None
        if tile is not None:
            return units, tile
    return available(f"conv2d_{kind}"), None


def plane(tensor: torch.Tensor) -> Operand:
    """Return an operand with four dimensions; a line is a plane of one row."""
    return _raised(operand(tensor))


def _raised(found: Operand) -> Operand:
    if len(found.shape) == 3:
        (n, c, width), (a, b, d) = found.shape, found.strides
        found.shape, found.strides = (n, c, 1, width), (a, b, 0, d)
    return found


def room_for(
    shape: Sizes, *likes: torch.Tensor, dtype: torch.dtype = torch.float32
) -> tuple[torch.Tensor, Operand]:
    """Return room for a result, channels-last where one of the operands is, as torch has it."""
    like = likes[0]
    if like.dim() == 4 and any(map(_channels_last, likes)):
        n, c, h, w = shape
        made = memory.new((n, h, w, c), dtype).permute(0, 3, 1, 2)
        return made, operand(made)
    found = room(shape if like.dim() == 4 else (*shape[:2], shape[3]), dtype)
    return found.tensor, _raised(found)


def _channels_last(tensor: torch.Tensor) -> bool:
    last = tensor.is_contiguous(memory_format=torch.channels_last)
    return last and not tensor.is_contiguous()
