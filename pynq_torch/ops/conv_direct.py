"""Direct convolutions of device "pynq" in int8, on ``conv2d_i8`` and ``depthwise_i8``.

Where an overlay has them they come before the lowering onto matrix products (`conv`), for int8
tensors and, where a program has opted in to it, for floating ones: the same arithmetic, to the bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pynq_torch.kernels.convolution_int8 import plan_int8
from pynq_torch.kernels.epilogue import BIAS, FLOAT32, INT32
from pynq_torch.kernels.windows import Window
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.flags import matmul

from .conv import factor_of, pack_weight
from .launch import available, launch, operand
from .linear import MAX_EXACT_K, vector
from .planes import MISSING, SIZES, plane, room_for, unit_for, unsuitable, window_of
from .quantise import FLOATS, TOO_LARGE, Packed, kept, overflows, per_tensor
from .units import result_dtype, timeout_of

__all__ = ["DEPTHWISE", "KERNEL", "Filters", "convolve", "filters_of", "is_direct"]

#: Their VLNV names.
KERNEL, DEPTHWISE = "conv2d_i8", "depthwise_i8"
_NOT_INT8 = Declined("floating values are not quantised unless a program has opted in to it")


@dataclass(slots=True)
class Filters:
    """A weight in int8, as one tensor.

    Attributes
    ----------
    values : torch.Tensor
        int8 [OC, C / groups, kh, kw] on device "pynq".
    scale : torch.Tensor
        float32 [OC] on the CPU.
    """

    values: torch.Tensor
    scale: torch.Tensor


def is_direct() -> bool:
    """Whether the loaded overlay convolves int8 without the lowering."""
    return bool(available(KERNEL))


def filters_of(packed: Sequence[Packed], shape: Sequence[int]) -> Filters:
    """Return a weight in matrices [K, OC / groups], one a group, as one tensor."""
    values = memory.new(tuple(shape), torch.int8)
    rows = [memory.alias(part.values).t() for part in packed]
    torch.cat(rows, out=memory.alias(values).view(shape[0], -1))
    memory.note_write(values)
    return Filters(values, torch.cat([part.scale for part in packed]))


def convolve(
    x: torch.Tensor,
    weight: torch.Tensor,
    window: Window,
    *,
    mode: int = INT32,
    scale: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
) -> torch.Tensor | Declined:
    """Convolve int8 with int8 on the PL; the result is in the layout that torch would give it.

    Parameters
    ----------
    x, weight : torch.Tensor
        int8 [N, C, H, W] and [OC, C / groups, kh, kw], or both over a line; on device "pynq".
    window : Window
        Stride, padding, dilation and groups.
    mode : int
        See :mod:`pynq_torch.kernels.epilogue`; BIAS is set where there is one.
    scale, bias : torch.Tensor, optional
        [OC] on device "pynq", float32 and of the dtype that `mode` asks for.
    """
    image, filters = plane(x), plane(weight)
    if image.shape[1] != filters.shape[1] * window.groups or filters.shape[0] % window.groups:
        return SIZES
    size = window.out_size((image.shape[2], image.shape[3]), (filters.shape[2], filters.shape[3]))
    if min(size) < 1:
        return SIZES
    slots, tile = unit_for("i8", window, filters, size)
    if not slots:
        return MISSING
    offset, factor = (None if t is None else operand(t) for t in (bias, scale))
    shape = (image.shape[0], filters.shape[0], *size)
    result, place = room_for(shape, x, dtype=result_dtype(mode))
    mode |= BIAS if bias is not None else 0
    runs, job = plan_int8(image, filters, place, window, mode, bias=offset, scale=factor, tile=tile)
    reads = [o for o in (image, filters, offset, factor, job) if o is not None]
    work = result.numel() * weight.numel() // weight.shape[0]
    launch(slots, runs, reads=reads, writes=[place], timeout_s=timeout_of(work))
    return result


def convolution(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    if not (is_direct() or available(DEPTHWISE)):
        return MISSING
    exact = input.dtype is torch.int8
    if transposed or not (exact or (matmul.allow_int8 and input.dtype in FLOATS)):
        return _NOT_INT8
    declined = unsuitable(input.dtype, input, weight)
    if declined:
        return declined
    window = window_of(input.dim(), stride, padding, dilation, groups, output_padding)
    if isinstance(window, Declined):
        return window
    wrong = bias is not None and (
        bias.shape != weight.shape[:1]
        or bias.dtype is not input.dtype
        or bias.device.type != "pynq"
    )
    if wrong or weight.shape[0] % groups:
        return SIZES
    if exact:
        # torch's int8 result is int8 and wraps: the low bits of the sums.
        offset = bias.to(torch.int32).contiguous() if bias is not None else None
        sums = convolve(input, weight, window, bias=offset)
        return sums if isinstance(sums, Declined) else sums.to(torch.int8)
    return _quantised(input, weight, bias, window)


def _quantised(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, window: Window
) -> torch.Tensor | Declined:
    depth = weight.numel() // weight.shape[0]
    if depth > MAX_EXACT_K:
        return Declined(f"a sum of {depth} products could leave int32")
    x = kept(input, "tensor", lambda: per_tensor(memory.alias(input)))
    filters = kept(weight, f"filters of {window.groups}", lambda: _pack(weight, window.groups))
    if isinstance(x, Declined) or isinstance(filters, Declined):
        return x if isinstance(x, Declined) else filters  # type: ignore[return-value]
    if overflows(x, Packed(filters.values, filters.scale, float(filters.scale.max())), depth):
        return TOO_LARGE
    factor, offset = factor_of(x, filters), vector(bias) if bias is not None else None
    result = convolve(x.values, filters.values, window, mode=FLOAT32, scale=factor, bias=offset)
    if isinstance(result, Declined) or input.dtype is torch.float32:
        return result
    return result.to(input.dtype)


def _pack(weight: torch.Tensor, groups: int) -> Filters | Declined:
    packed = pack_weight(weight, groups)
    return packed if isinstance(packed, Declined) else filters_of(packed, weight.shape)
