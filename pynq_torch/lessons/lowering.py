"""The lowering of a convolution, taken apart for lessons; operators use `pynq_torch.ops.conv`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from pynq_torch.ops.conv import TILE_BYTES, Geometry, Tile, fill_columns, tiles
from pynq_torch.timing import model

__all__ = ["Cost", "columns", "cost", "geometry"]

_Size = int | tuple[int, int]


@dataclass(frozen=True)
class Cost:
    """What a convolution asks of the kernel `gemm`.

    Attributes
    ----------
    mac : int
        Multiplications.
    starts : int
        Starts of the kernel: one for each tile and group.
    cycles : int
        Cycles of all starts, by the kernel's latency model.
    matrix_bytes : int
        Size of the int8 matrix of one group, if it existed as a whole.
    tile_bytes : int
        Size of the largest tile of it, which does exist.
    """

    mac: int
    starts: int
    cycles: int
    matrix_bytes: int
    tile_bytes: int


def geometry(
    x: Any, weight: Any, stride: _Size = 1, padding: _Size = 0, dilation: _Size = 1, groups: int = 1
) -> Geometry:
    """Return the sizes of ``torch.conv2d(x, weight, None, stride, padding, dilation, groups)``.

    Parameters
    ----------
    x, weight : torch.Tensor or sequence of int
        [N, C, H, W] and [OC, C / groups, kh, kw], or their shapes.
    stride, padding, dilation : int or (int, int)
        (vertical, horizontal).
    groups : int
        Parts of the channels that do not see each other.

    Raises
    ------
    ValueError
        The sizes do not fit each other, or the window does not fit into the picture.
    """
    batch, channels, height, width = _shape("x", x)
    out_channels, each, kh, kw = _shape("weight", weight)
    if channels != each * groups or out_channels % groups:
        raise ValueError(
            f"x has {channels} channels and weight {out_channels} x {each} for {groups} groups; "
            "expected a weight of (a multiple of groups) x (channels / groups)"
        )
    steps, pad, apart = (v if isinstance(v, tuple) else (v, v) for v in (stride, padding, dilation))
    found = Geometry(
        *(batch, channels, height, width, out_channels), (kh, kw), steps, pad, apart, groups
    )
    if min(found.out_size) < 1:
        raise ValueError(
            f"the window of {kh}x{kw} with dilation {apart} does not fit "
            f"into {height}x{width} with padding {pad}"
        )
    return found


def _shape(name: str, value: Any) -> Sequence[int]:
    shape: Sequence[int] = value.shape if isinstance(value, torch.Tensor) else value
    if len(shape) != 4:
        raise ValueError(f"{name} has shape {tuple(shape)}; expected four dimensions")
    return shape


def columns(x: torch.Tensor, sizes: Geometry, group: int = 0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the padded picture, and the whole matrix of a group: a row for each output pixel.

    Parameters
    ----------
    x : torch.Tensor
        [N, C, H, W] on the CPU.
    sizes : Geometry
        See `geometry`.
    group : int
        Number of the group of channels.

    Returns
    -------
    tuple of torch.Tensor
        [N, C, H + 2 pad, W + 2 pad] and [pixels, K], of the dtype of `x`.
    """
    ph, pw = sizes.padding
    padded = torch.nn.functional.pad(x, (pw, pw, ph, ph)).contiguous()
    rows, across = sizes.out_size
    whole = Tile(0, sizes.batch, 0, rows)
    room = torch.empty(sizes.batch * rows * across, sizes.depth, dtype=x.dtype)
    return padded, fill_columns(room, padded, sizes, whole, group)


def cost(sizes: Geometry, tile_bytes: int = TILE_BYTES) -> Cost:
    """Return what a convolution asks of the kernel `gemm`, on one compute unit.

    Parameters
    ----------
    sizes : Geometry
        See `geometry`.
    tile_bytes : int
        Bytes of columns at a time.
    """
    rows, across = sizes.out_size
    parts = tiles(sizes, tile_bytes)
    pixels = [(t.image_end - t.image) * (t.last - t.first) * across for t in parts]
    k, n = sizes.depth, sizes.out_channels // sizes.groups
    # At a clock of 1 Hz seconds are cycles; a kernel without a model is an error there.
    cycles = sum(int(model("gemm", 1.0, m=m, k=k, n=n).seconds) for m in pixels)
    total = sizes.batch * rows * across * k
    return Cost(
        total * sizes.out_channels,
        len(pixels) * sizes.groups,
        cycles * sizes.groups,
        total,
        max(pixels) * k,
    )
