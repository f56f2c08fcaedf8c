"""Convolution of device "pynq": lowered onto matrix products, a tile of columns at a time.

``conv2d(x, w)`` is a matrix product: a row for each output pixel with the pixels under the window
(``C * kh * kw`` of them), times a column for each output channel. The rows are made tile by tile
in one buffer, so that no more than a tile of them is ever in memory; the product of a tile lands
where it belongs in the result, which is channels-last.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pynq_torch.kernels.epilogue import BIAS, FLOAT32, INT32, KIND
from pynq_torch.kernels.windows import Window
from pynq_torch.torch_device import memory
from pynq_torch.torch_device.dispatch import Declined
from pynq_torch.torch_device.fallback import place
from pynq_torch.torch_device.flags import matmul
from pynq_torch.torch_device.record import transfer

from .common import on_cpu, short
from .launch import available
from .linear import MAX_EXACT_K, OPT_IN, vector
from .planes import window_of
from .quantise import FLOATS, TOO_LARGE, Packed, kept, overflows, per_column, per_tensor
from .units import Matrix, multiply, result_dtype, units

__all__ = [
    "TILE_BYTES",
    "Geometry",
    "Tile",
    "convolve",
    "factor_of",
    "fill_columns",
    "pack_weight",
    "tiles",
]

#: Bytes of columns at a time; half the L2 cache of the Zynq-7000 (512 KB).
TILE_BYTES = 256 << 10
_NO_UNIT = Declined(
    "no overlay loaded with pynq_torch.load has a unit that multiplies matrices: "
    "pynq_torch.load('gemm')",
    missing=True,
)
_SIZES = on_cpu("the sizes do not fit, or there is nothing to convolve")


@dataclass(frozen=True, slots=True)
class Geometry:
    """Sizes of a convolution.

    Attributes
    ----------
    batch, channels, height, width : int
        Of the input.
    out_channels, kernel, groups
        Of the weight; `kernel` is (rows, columns).
    stride, padding, dilation : tuple of int
        (vertical, horizontal).
    """

    batch: int
    channels: int
    height: int
    width: int
    out_channels: int
    kernel: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int]
    dilation: tuple[int, int]
    groups: int

    @property
    def out_size(self) -> tuple[int, int]:
        """Rows and columns of the output."""
        window = Window(self.stride, self.padding, self.dilation)
        return window.out_size((self.height, self.width), self.kernel)

    @property
    def depth(self) -> int:
        """Products in a sum: the K of the matrix product."""
        return self.channels // self.groups * self.kernel[0] * self.kernel[1]


@dataclass(frozen=True, slots=True)
class Tile:
    """Some output pixels: rows `first` to `last` of images `image` to `image_end`."""

    image: int
    image_end: int
    first: int
    last: int


def tiles(geometry: Geometry, tile_bytes: int = TILE_BYTES) -> Iterator[Tile]:
    """Yield the tiles of a convolution: whole images where they fit, rows of one where not.

    A tile has at least one row of output pixels, whatever its size. No size is 0.
    """
    rows, columns = geometry.out_size
    row_bytes = columns * geometry.depth
    images = tile_bytes // (rows * row_bytes)
    if images:
        for image in range(0, geometry.batch, images):
            yield Tile(image, min(image + images, geometry.batch), 0, rows)
        return
    step = max(1, tile_bytes // row_bytes)
    for image in range(geometry.batch):
        for first in range(0, rows, step):
            yield Tile(image, image + 1, first, min(first + step, rows))


def fill_columns(
    columns: torch.Tensor, padded: torch.Tensor, geometry: Geometry, tile: Tile, group: int
) -> torch.Tensor:
    """Write the rows of the matrix product of one tile.

    Parameters
    ----------
    columns : torch.Tensor
        [at least the tile's pixels, K]; its first rows are written.
    padded : torch.Tensor
        [N, C, H + 2 pad, W + 2 pad], the padded input, row-major.
    geometry, tile : Geometry, Tile
        Which pixels.
    group : int
        Which group of channels.

    Returns
    -------
    torch.Tensor
        The rows that were written: [pixels, K], pixels in order (image, row, column), K in order
        (channel, kernel row, kernel column).
    """
    per_group = geometry.channels // geometry.groups
    out_columns = geometry.out_size[1]
    n, c, h, w = padded.stride()
    (sh, sw), (dh, dw), (kh, kw) = geometry.stride, geometry.dilation, geometry.kernel
    shape = (
        *(tile.image_end - tile.image, tile.last - tile.first, out_columns),
        *(per_group, kh, kw),
    )
    start = int(padded.storage_offset()) + tile.image * n + group * per_group * c
    start += tile.first * sh * h
    windows = torch.as_strided(padded, shape, (n, sh * h, sw * w, c, dh * h, dw * w), start)
    pixels = shape[0] * shape[1] * shape[2]
    rows = columns[:pixels]
    rows.view(shape).copy_(windows)
    return rows


def pack_weight(weight: torch.Tensor, groups: int) -> list[Packed] | Declined:
    """Quantise a weight [OC, C / groups, kh, kw] as one matrix [K, OC / groups] a group."""
    found = []
    for part in memory.alias(weight).chunk(groups):
        packed = per_column(part.reshape(part.shape[0], -1).t())
        if isinstance(packed, Declined):
            return packed
        found.append(packed)
    return found


def convolve(
    x: Packed,
    weights: Sequence[Packed],
    geometry: Geometry,
    *,
    mode: int = FLOAT32,
    factors: Sequence[torch.Tensor] | None = None,
    bias: torch.Tensor | None = None,
) -> torch.Tensor:
    """Convolve int8 with int8 on the units: [N, OC, rows, columns], channels-last in memory.

    Parameters
    ----------
    x, weights : Packed, sequence of Packed
        [N, C, H, W] with one scale; [K, OC / groups] for each group, see `pack_weight`.
    geometry, mode : Geometry, int
        Sizes, none is 0; see `pynq_torch.kernels.epilogue`. int8 results need one group.
    factors, bias : optional
        On device "pynq": float32 [OC / groups] for each group, default for float32 results the
        scales; [OC] of the dtype that `mode` asks for.
    """
    rows, columns = geometry.out_size
    per_group = geometry.out_channels // geometry.groups
    floating = mode & KIND == FLOAT32
    room = geometry.out_channels if floating else -(-geometry.out_channels // 4) * 4
    if factors is None and floating:
        factors = [factor_of(x, weight) for weight in weights]
    mode |= BIAS if bias is not None else 0
    result = memory.new((geometry.batch * rows * columns, room), result_dtype(mode))
    for at, group, lowered in _lowered(x, geometry):
        part = slice(group * per_group, (group + 1) * per_group)
        multiply(
            *(Matrix(values, units().device) for values in (lowered, weights[group].values)),
            mode=mode,
            scale=factors[group] if factors is not None else None,
            bias=bias[part] if bias is not None else None,
            out=result[at : at + lowered.shape[0], part],
        )
    images = result.view(geometry.batch, rows, columns, room)
    return images[..., : geometry.out_channels].permute(0, 3, 1, 2)


def _lowered(x: Packed, geometry: Geometry) -> Iterator[tuple[int, int, torch.Tensor]]:
    """Yield the first pixel, the group and the rows of each product, in one buffer for all."""
    columns = geometry.out_size[1]
    counts = [(t.image_end - t.image) * (t.last - t.first) * columns for t in tiles(geometry)]
    with transfer():
        padded = _padded(memory.alias(x.values), geometry.padding)
    buffer = memory.new((max(counts), geometry.depth), torch.int8)
    at = 0
    for tile, count in zip(tiles(geometry), counts, strict=True):
        for group in range(geometry.groups):
            with transfer():
                fill_columns(memory.block_of(buffer).cpu, padded, geometry, tile, group)
                memory.note_write(buffer)
            yield at, group, buffer[:count]
        at += count


def factor_of(x: Packed, weight: Any) -> torch.Tensor:
    """Return what sums are multiplied by, float32 [columns] on device "pynq"."""
    made = memory.new(weight.scale.shape, torch.float32)
    torch.mul(weight.scale, x.scale, out=memory.block_of(made).cpu)
    return made


def _padded(x: torch.Tensor, padding: tuple[int, int]) -> torch.Tensor:
    if any(padding):
        return torch.nn.functional.pad(x, (padding[1], padding[1], padding[0], padding[0]))
    return x.contiguous()


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
    declined = _unsuitable(input, weight, bias, transposed)
    if declined:
        return declined
    window = window_of(input.dim(), stride, padding, dilation, groups, output_padding)
    if isinstance(window, Declined):
        return window
    line = input.dim() == 3
    x, w = (input.unsqueeze(2), weight.unsqueeze(2)) if line else (input, weight)
    geometry = _geometry(x, w, bias, window)
    if geometry is None or not (x.numel() and w.numel()):
        return _SIZES
    result = (_exact if x.dtype is torch.int8 else _quantised)(x, w, bias, geometry)
    if isinstance(result, Declined):
        return result
    result = _in_layout(result, x)
    return result.squeeze(2) if line else result


def _unsuitable(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, transposed: bool
) -> Declined | None:
    if not units():
        return _NO_UNIT
    if available("conv2d_i8"):
        return Declined("the overlay convolves int8 directly")  # see conv_direct
    if transposed or input.dim() not in (3, 4) or weight.dim() != input.dim():
        return Declined("only convolutions over one or two dimensions, not transposed ones")
    if input.dtype is not torch.int8 and input.dtype not in FLOATS:
        return Declined(f"no unit convolves {short(input.dtype)}")
    if not (input.dtype is torch.int8 or matmul.allow_int8):
        return OPT_IN
    tensors = [t for t in (input, weight, bias) if t is not None]
    if any(t.device.type != "pynq" or t.dtype is not input.dtype for t in tensors):
        return on_cpu("the operands differ in device or dtype")
    return None


def _quantised(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, geometry: Geometry
) -> torch.Tensor | Declined:
    if geometry.depth > MAX_EXACT_K:
        return Declined(f"a sum of {geometry.depth} products could leave int32")
    groups = geometry.groups
    x = kept(input, "tensor", lambda: per_tensor(memory.alias(input)))
    packed = kept(weight, f"columns of {groups}", lambda: pack_weight(weight, groups))
    if isinstance(x, Declined):
        return x
    if isinstance(packed, Declined):
        return packed
    if any(overflows(x, part, geometry.depth) for part in packed):
        return TOO_LARGE
    result = convolve(x, packed, geometry, bias=vector(bias) if bias is not None else None)
    return result if input.dtype is torch.float32 else result.to(input.dtype)


def _exact(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, geometry: Geometry
) -> torch.Tensor:
    """Convolve int8 as torch does: the result is int8 and wraps, the low bits of the sums."""

    def matrices() -> list[Packed]:
        parts = memory.alias(weight).chunk(geometry.groups)
        return [Packed(place(p.reshape(p.shape[0], -1).t().contiguous()), 1.0) for p in parts]

    packed = kept(weight, f"matrices of {geometry.groups}", matrices)
    offset = bias.to(torch.int32) if bias is not None else None
    sums = convolve(Packed(input, 1.0), packed, geometry, mode=INT32, bias=offset)
    return sums.to(torch.int8)


def _in_layout(result: torch.Tensor, input: torch.Tensor) -> torch.Tensor:
    """Return a channels-last result as torch would for such an input."""
    if input.is_contiguous(memory_format=torch.channels_last) and not input.is_contiguous():
        return result
    return result.contiguous()


def _geometry(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, window: Window
) -> Geometry | None:
    """Return the sizes, ``None`` where torch would find them wrong."""
    out_channels, per_group, kh, kw = weight.shape
    batch, channels, height, width = input.shape
    if per_group * window.groups != channels or out_channels % window.groups:
        return None
    if bias is not None and bias.shape != (out_channels,):
        return None
    geometry = Geometry(
        *(batch, channels, height, width, out_channels, (kh, kw)),
        *(window.stride, window.padding, window.dilation, window.groups),
    )
    return geometry if min(geometry.out_size) > 0 else None
