"""A convolution and its gradients as jobs of the conv2d kernels: which tap lies where.

The kernel computes, for every group, image and channel,

    result[y][x] += weight[i][j] * image[(y * stride + i * step - pad) / gap]

where the position is whole and inside. The gradient of the input is the same with the weight turned
round and the gradient's elements `gap` apart; that of the weight has the images of the batch for
channels and the gradient for a weight.
"""

from __future__ import annotations

from dataclasses import dataclass

from pynq_torch.models.tiling import Tiling, tiling

from .operand import Operand

__all__ = [
    "Window",
    "forward",
    "grad_input",
    "grad_weight",
]

Pair = tuple[int, int]
#: What a word holds of a number, in two's complement.
_WORD = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Window:
    """How a weight moves over an image; pairs are (vertical, horizontal).

    Attributes
    ----------
    stride, padding, dilation : tuple of int
        As torch's.
    groups : int
        As torch's.
    """

    stride: Pair = (1, 1)
    padding: Pair = (0, 0)
    dilation: Pair = (1, 1)
    groups: int = 1

    def out_size(self, image: Pair, kernel: Pair) -> Pair:
        """Return rows and columns of the result; below 1 where the weight does not fit."""
        (sy, sx), (py, px), (dy, dx) = self.stride, self.padding, self.dilation
        return (
            (image[0] + 2 * py - dy * (kernel[0] - 1) - 1) // sy + 1,
            (image[1] + 2 * px - dx * (kernel[1] - 1) - 1) // sx + 1,
        )

    def transposed_size(self, image: Pair, kernel: Pair, more: Pair) -> Pair:
        """Return rows and columns of a transposed convolution; `more` is its output padding."""
        rows, columns = (
            (size - 1) * stride - 2 * pad + step * (k - 1) + extra + 1
            for size, pad, step, k, stride, extra in zip(
                image, self.padding, self.dilation, kernel, self.stride, more, strict=True
            )
        )
        return rows, columns


def forward(
    x: Operand, weight: Operand, result: Operand, window: Window, tile: Tiling | None = None
) -> tuple[int, ...]:
    """Return the settings of a convolution, all but pointers and mode.

    Parameters
    ----------
    x, weight, result : Operand
        [N, C, H, W], [OC, C / groups, kh, kw] and [N, OC, rows, columns]; any strides.
    window : Window
        Stride, padding, dilation and groups.
    tile : tuple of int, optional
        Default: that of `tiling`.
    """
    (n, _, height, width), (outs, inner, kh, kw) = x.shape, weight.shape
    xs, ws, rs, groups = x.strides, weight.strides, result.strides, window.groups
    per = outs // groups
    rows, columns = result.shape[2:]
    return _settings(
        (groups, n, inner, per, height, width, rows, columns, kh, kw),
        (window.stride, window.padding, window.dilation, (1, 1)),
        (inner * xs[1], *xs),
        (per * ws[0], *ws),
        (per * rs[1], *rs),
        tile=tile,
    )


def grad_input(
    grad: Operand, weight: Operand, result: Operand, window: Window
) -> tuple[tuple[int, ...], int]:
    """Return the settings for the gradient of the input, or for a transposed convolution.

    Parameters
    ----------
    grad, weight, result : Operand
        [N, OC, rows, columns], [OC, C / groups, kh, kw] and [N, C, H, W].
    window : Window
        That of the convolution.

    Returns
    -------
    settings : tuple of int
    offset : int
        Elements from the weight's first to its last tap, where it is read from.
    """
    (n, outs, rows, columns), (_, inner, kh, kw) = grad.shape, weight.shape
    gs, ws, rs, groups = grad.strides, weight.strides, result.strides, window.groups
    per = outs // groups
    height, width = result.shape[2:]
    pads = [
        (k - 1) * step - pad
        for k, step, pad in zip((kh, kw), window.dilation, window.padding, strict=True)
    ]
    settings = _settings(
        (groups, n, per, inner, rows, columns, height, width, kh, kw),
        ((1, 1), (pads[0], pads[1]), window.dilation, window.stride),
        (per * gs[1], *gs),
        (per * ws[0], ws[1], ws[0], -ws[2], -ws[3]),
        (inner * rs[1], *rs),
    )
    return settings, (kh - 1) * ws[2] + (kw - 1) * ws[3]


def grad_weight(x: Operand, grad: Operand, result: Operand, window: Window) -> tuple[int, ...]:
    """Return the settings for the gradient of the weight.

    Parameters
    ----------
    x, grad, result : Operand
        [N, C, H, W], [N, OC, rows, columns] and [OC, C / groups, kh, kw].
    window : Window
        That of the convolution.
    """
    (n, _, height, width), (_, outs, rows, columns) = x.shape, grad.shape
    _, inner, kh, kw = result.shape
    xs, gs, rs, groups = x.strides, grad.strides, result.strides, window.groups
    per = outs // groups
    return _settings(
        (groups, inner, n, per, height, width, kh, kw, rows, columns),
        (window.dilation, window.padding, window.stride, (1, 1)),
        (inner * xs[1], xs[1], xs[0], xs[2], xs[3]),
        (per * gs[1], gs[1], gs[0], gs[2], gs[3]),
        (per * rs[0], rs[1], rs[0], rs[2], rs[3]),
    )


def _settings(
    sizes: tuple[int, ...],
    window: tuple[Pair, Pair, Pair, Pair],
    *steps: tuple[int, ...],
    tile: Tiling | None = None,
) -> tuple[int, ...]:
    """Return sizes, window, steps of image, weight and result, and tiles, as words of a job."""
    stride, pad, step, gap = window
    tile = tile or tiling((sizes[6], sizes[7]), (sizes[8], sizes[9]), stride, step)
    moves = (*stride, pad[0] & _WORD, pad[1] & _WORD, *step, *gap)
    # Steps are those of memory that exists, and what a side of one element says is never used.
    words = [value & _WORD for own in steps for value in own]
    return (*sizes, *moves, *words, *tile)
