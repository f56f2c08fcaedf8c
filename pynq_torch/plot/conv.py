"""Pictures of convolutions: how one becomes a matrix product, and what a network reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .charts import COLOURS, as_array, grid_of_axes

if TYPE_CHECKING:
    import torch

    from pynq_torch.ops.conv import Geometry

__all__ = ["confusion", "images", "lowering", "taps"]

#: More numbers than these in one panel could not be read.
_MOST_NUMBERS = 600
_STYLE: dict[str, Any] = {"axes.grid": False, "font.size": 12}


def taps(geometry: Geometry, pixel: int) -> list[tuple[int, int]]:
    """Return what the window of an output pixel covers: (row, column) in the padded image.

    Parameters
    ----------
    geometry : Geometry
        Sizes of the convolution.
    pixel : int
        Number of the output pixel, row by row.
    """
    rows, columns = geometry.out_size
    if not 0 <= pixel < rows * columns:
        raise ValueError(f"pixel is {pixel}; expected 0 to {rows * columns - 1}")
    (sh, sw), (dh, dw), (kh, kw) = geometry.stride, geometry.dilation, geometry.kernel
    top, left = pixel // columns * sh, pixel % columns * sw
    return [(top + i * dh, left + j * dw) for i in range(kh) for j in range(kw)]


def lowering(
    padded: torch.Tensor,
    matrix: torch.Tensor,
    result: torch.Tensor,
    geometry: Geometry,
    pixel: int,
    *,
    title: str = "",
) -> Any:
    """Draw a convolution of one image as a matrix product, and follow one output pixel.

    Parameters
    ----------
    padded : torch.Tensor
        [1, C, H + 2 pad, W + 2 pad]; channels are drawn below each other.
    matrix : torch.Tensor
        [pixels, K], its rows of pixels; see `pynq_torch.ops.conv.fill_columns`.
    result : torch.Tensor
        [1, OC, rows, columns]; the first output channel is drawn.
    geometry : Geometry
        Sizes of the convolution; one group.
    pixel : int
        The output pixel to follow, counted row by row.
    title : str
        Title of the picture.

    Returns
    -------
    sequence of matplotlib.axes.Axes
        The padded image, the matrix, the result.
    """
    width = padded.shape[3]
    widths = (width, max(matrix.shape[1], width), result.shape[3])
    (axes,) = grid_of_axes((13, 5.5), 3, widths=widths, **_STYLE)
    _image(axes[0], as_array(padded)[0].astype(float), geometry, pixel)
    _matrix(axes[1], as_array(matrix).astype(float), pixel)
    _result(axes[2], as_array(result)[0, 0].astype(float), pixel)
    if title:
        axes[0].figure.suptitle(title)
    return axes


def _image(ax: Any, image: np.ndarray[Any, Any], geometry: Geometry, pixel: int) -> None:
    """Draw the channels of a padded image below each other, with the window of a pixel."""
    ph, pw = geometry.padding
    channels, height, width = image.shape
    gap = np.full((1, width), np.nan)
    parts = [part for channel in image for part in (channel, gap)][:-1]
    outside = np.ones((height, width), dtype=bool)
    outside[ph : height - ph, pw : width - pw] = False
    _numbers(ax, np.concatenate(parts), "padded image")
    for first in range(0, channels * (height + 1), height + 1):
        for row, column in np.argwhere(outside).tolist():
            _frame(ax, first + row, column, hatch="///", edgecolor="0.75", linewidth=0)
        for row, column in taps(geometry, pixel):
            _frame(ax, first + row, column)


def _matrix(ax: Any, matrix: np.ndarray[Any, Any], pixel: int) -> None:
    """Draw the matrix that has a row for each output pixel, with a frame around one of them."""
    count, depth = matrix.shape
    _numbers(ax, matrix, f"matrix: {count} pixels x K = {depth}")
    ax.set_aspect("auto")
    _frame(ax, pixel, 0, width=depth)


def _result(ax: Any, channel: np.ndarray[Any, Any], pixel: int) -> None:
    """Draw a channel of the output, with a frame around a pixel."""
    _numbers(ax, channel, "result")
    _frame(ax, *divmod(pixel, channel.shape[1]))


def _numbers(ax: Any, values: np.ndarray[Any, Any], title: str) -> None:
    """Draw a matrix as pale colours, with its numbers where they can be read."""
    largest = float(abs(values[values == values]).max(initial=0.0)) or 1.0
    # Three times the range, so that the darkest colour still lets black numbers be read.
    ax.imshow(values, cmap="PuOr", vmin=-3 * largest, vmax=3 * largest)
    if values.size <= _MOST_NUMBERS:
        size = 11 if max(values.shape) <= 12 else 8
        for row, column in np.argwhere(values == values).tolist():
            text = f"{values[row, column]:g}"
            ax.text(column, row, text, ha="center", va="center", fontsize=size)
    ax.set(xticks=[], yticks=[], title=title)


def _frame(ax: Any, row: int, column: int, *, width: int = 1, **style: Any) -> None:
    from matplotlib.patches import Rectangle

    look = {"edgecolor": COLOURS["vermillion"], "linewidth": 2.5, **style}
    ax.add_patch(Rectangle((column - 0.5, row - 0.5), width, 1, fill=False, **look))


def confusion(read: Mapping[str, torch.Tensor], truth: torch.Tensor) -> Any:
    """Draw what was taken for what: a row for each true class, a column for each that was read.

    Parameters
    ----------
    read : mapping of str to tensor
        Title -> int64 [N], classes from 0.
    truth : torch.Tensor
        int64 [N].

    Returns
    -------
    sequence of matplotlib.axes.Axes
        A picture for each entry of `read`. The diagonal is what was read right.
    """
    true = as_array(truth)
    found_of = {title: as_array(labels) for title, labels in read.items()}
    classes = max(int(labels.max()) for labels in (true, *found_of.values())) + 1
    (axes,) = grid_of_axes((5.5 * len(read), 5), len(read), **_STYLE)
    for ax, (title, found) in zip(axes, found_of.items(), strict=True):
        counts = np.bincount(true * classes + found, minlength=classes**2)
        counts = counts.reshape(classes, classes)
        wrong = counts.copy()
        np.fill_diagonal(wrong, 0)
        ax.imshow(wrong, cmap="Oranges", vmin=0, vmax=2 * max(1, int(wrong.max())))
        for row, column in np.argwhere(counts).tolist():
            weight = "normal" if row == column else "bold"
            style = {"ha": "center", "va": "center", "fontweight": weight}
            ax.text(column, row, str(counts[row, column]), **style)
        ax.set(xticks=range(classes), yticks=range(classes), xlabel="read", ylabel="true")
        ax.set_title(f"{title}: {int(wrong.sum())} wrong of {len(truth)}")
    return axes


def images(pictures: torch.Tensor, captions: Sequence[str], *, columns: int = 8) -> Any:
    """Draw grey pictures with a caption each.

    Parameters
    ----------
    pictures : torch.Tensor
        [N, 1, H, W]; 0 is white.
    captions : sequence of str
        One for each.
    columns : int
        Pictures in a row.

    Returns
    -------
    sequence of matplotlib.axes.Axes
        One for each picture.
    """
    if len(captions) != len(pictures):
        raise ValueError(f"{len(captions)} captions for {len(pictures)} pictures")
    rows = max(1, -(-len(pictures) // columns))
    grid = list(grid_of_axes((1.6 * columns, 2.0 * rows), columns, rows).flat)
    for ax in grid:
        ax.set_axis_off()
    drawn = grid[: len(pictures)]
    for ax, picture, caption in zip(drawn, pictures, captions, strict=True):
        ax.imshow(picture[0].detach(), cmap="Greys")
        ax.set_title(caption, fontsize=12)
    return drawn
