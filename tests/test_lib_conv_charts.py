"""Pictures of convolutions: what they frame is what the lowering takes, and counts are right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch.nn import functional

from pynq_torch.ops import conv
from pynq_torch.plot import conv as plots_conv


@pytest.fixture
def axes() -> Iterator[Any]:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


def _lowered(channels: int, stride: int, padding: int, dilation: int) -> tuple[Any, ...]:
    pairs = [(size, size) for size in (stride, padding, dilation)]
    geometry = conv.Geometry(1, channels, 6, 7, 1, (3, 2), *pairs, 1)
    x = torch.arange(channels * 42).reshape(1, channels, 6, 7).to(torch.int8)
    padded = functional.pad(x, (padding,) * 4)
    rows, columns = geometry.out_size
    room = torch.empty(rows * columns, geometry.depth, dtype=torch.int8)
    matrix = conv.fill_columns(room, padded, geometry, next(conv.tiles(geometry)), 0)
    return geometry, padded, matrix


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("padding", [0, 2])
@pytest.mark.parametrize("dilation", [1, 2])
def test_the_taps_of_a_pixel_are_its_row_of_the_matrix(stride: int, padding: int, dilation: int):
    geometry, padded, matrix = _lowered(1, stride, padding, dilation)
    rows, columns = geometry.out_size
    for pixel in range(rows * columns):
        under = [int(padded[0, 0, row, column]) for row, column in plots_conv.taps(geometry, pixel)]
        assert under == matrix[pixel].tolist()
    with pytest.raises(ValueError, match=f"expected 0 to {rows * columns - 1}"):
        plots_conv.taps(geometry, rows * columns)


def _framed(ax: Any) -> list[tuple[float, float, float]]:
    """Return (row, column, width) of the frames that mark the chosen pixel."""
    marks = [p for p in ax.patches if p.get_linewidth()]
    return [(p.get_y() + 0.5, p.get_x() + 0.5, p.get_width()) for p in marks]


def test_the_picture_frames_the_window_the_row_and_the_result(axes: Any):
    geometry, padded, matrix = _lowered(2, 2, 1, 1)
    result = torch.zeros(1, 1, *geometry.out_size)
    pixel = geometry.out_size[1] + 1  # row 1, column 1
    image, rows, out = plots_conv.lowering(padded, matrix, result, geometry, pixel, title="t")
    taps = plots_conv.taps(geometry, pixel)
    below = padded.shape[2] + 1  # the second channel, behind a gap
    expected = [(row + first, column, 1) for first in (0, below) for row, column in taps]
    assert _framed(image) == expected
    assert _framed(rows) == [(pixel, 0, geometry.depth)]
    assert _framed(out) == [(1, 1, 1)]
    numbers = [text.get_text() for text in rows.texts]
    assert numbers == [str(int(v)) for v in matrix.flatten()]
    assert rows.get_title() == f"matrix: {len(matrix)} pixels x K = 12"
    rim = padded.shape[2] * padded.shape[3] - 42
    assert sum(not p.get_linewidth() for p in image.patches) == 2 * rim


def test_a_confusion_counts_what_was_taken_for_what(axes: Any):
    truth = torch.tensor([0, 0, 1, 2, 2, 2])
    read = torch.tensor([0, 2, 1, 2, 2, 1])
    right, wrong = plots_conv.confusion({"a": truth, "b": read}, truth)
    assert right.get_title() == "a: 0 wrong of 6" and wrong.get_title() == "b: 2 wrong of 6"
    at = {text.get_position(): text.get_text() for text in wrong.texts}  # (column, row)
    assert at == {(0, 0): "1", (2, 0): "1", (1, 1): "1", (1, 2): "1", (2, 2): "2"}


def test_pictures_have_captions(axes: Any):
    drawn = plots_conv.images(torch.rand(5, 1, 8, 8), [str(i) for i in range(5)], columns=4)
    assert [ax.get_title() for ax in drawn] == list("01234")
    assert plots_conv.images(torch.zeros(0, 1, 8, 8), []) == []
    with pytest.raises(ValueError, match="1 captions for 2 pictures"):
        plots_conv.images(torch.zeros(2, 1, 8, 8), ["a"])
