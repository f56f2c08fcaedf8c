"""What lessons say of direct convolutions: bytes counted as the kernels read them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pynq_torch.kernels.tables.convolution import OUTS
from pynq_torch.lessons import direct, lowering
from pynq_torch.models.tiling import tiling
from pynq_torch.ops.conv import Geometry


def read_by_loops(sizes: Geometry) -> int:
    """Count the elements of the image that conv2d reads, tile by tile as its loops go."""
    rows, columns = sizes.out_size
    tile = tiling((rows, columns), sizes.kernel, sizes.stride, sizes.dilation)
    seen = 0
    for y in range(0, rows, tile[0]):
        for x in range(0, columns, tile[1]):
            for i in range(0, sizes.kernel[0], tile[2]):
                for j in range(0, sizes.kernel[1], tile[3]):
                    spans = []
                    for d, (first, count, tap, taps, extent) in enumerate(
                        (
                            (y, min(tile[0], rows - y), i, tile[2], sizes.height),
                            (x, min(tile[1], columns - x), j, tile[3], sizes.width),
                        )
                    ):
                        window = min(taps, sizes.kernel[d] - tap)
                        start = first * sizes.stride[d] + tap * sizes.dilation[d]
                        cells = (count - 1) * sizes.stride[d] + (window - 1) * sizes.dilation[d] + 1
                        here = range(start - sizes.padding[d], start - sizes.padding[d] + cells)
                        spans.append(sum(0 <= cell < extent for cell in here))
                    seen += spans[0] * spans[1]
    return seen


@settings(max_examples=40)
@given(
    size=st.tuples(st.integers(1, 90), st.integers(1, 90)),
    kernel=st.tuples(st.integers(1, 20), st.integers(1, 20)),
    stride=st.tuples(st.integers(1, 4), st.integers(1, 4)),
    padding=st.tuples(st.integers(0, 20), st.integers(0, 20)),
    groups=st.integers(1, 3),
    outs=st.integers(1, 70),
)
def test_the_bytes_of_the_image(
    size: tuple[int, int], kernel: tuple[int, int], stride: tuple[int, int],
    padding: tuple[int, int], groups: int, outs: int,
) -> None:  # fmt: skip
    sizes = Geometry(2, 2 * groups, *size, groups * outs, kernel, stride, padding, (1, 1), groups)
    if min(sizes.out_size) < 1:
        return
    for kind, name, nbytes in (("int8", "conv2d_i8", 1), ("float", "conv2d_f32", 4)):
        passes = -(-outs // OUTS[kind])
        work = direct.of_kernel(sizes, name)
        assert work.image_bytes == nbytes * 2 * 2 * groups * passes * read_by_loops(sizes)
        pixels = 2 * groups * outs * sizes.out_size[0] * sizes.out_size[1]
        assert work.result_bytes == 4 * pixels and work.mac == pixels * sizes.depth
        assert work.cycles >= work.mac / 32 and work.nbytes > work.image_bytes


def test_a_layer_that_fits_is_read_once() -> None:
    sizes = lowering.geometry((3, 6, 14, 14), (16, 6, 5, 5))
    work, other = direct.of_kernel(sizes), direct.lowered(sizes)
    assert work.image_bytes == 3 * 6 * 14 * 14
    assert work.weight_bytes == 3 * 16 * 6 * 25
    assert other.cycles == lowering.cost(sizes).cycles
    assert other.image_bytes == work.image_bytes + 2 * lowering.cost(sizes).matrix_bytes


def test_depthwise_takes_a_kernel_of_its_own() -> None:
    sizes = lowering.geometry((1, 32, 56, 56), (32, 1, 3, 3), padding=1, groups=32)
    own, general = direct.of_kernel(sizes, "depthwise_i8"), direct.of_kernel(sizes)
    assert own.cycles < general.cycles < direct.lowered(sizes).cycles
    assert direct.of_kernel(sizes, "depthwise_f32").image_bytes == 4 * own.image_bytes
    full = lowering.geometry((1, 32, 56, 56), (32, 32, 3, 3), padding=1)
    with pytest.raises(ValueError, match="32 channels a group"):
        direct.of_kernel(full, "depthwise_i8")
    with pytest.raises(ValueError, match="expected one of conv2d_i8"):
        direct.of_kernel(full, "gemm")
    table = direct.compare({"full": full, "each": sizes}, ["gemm", "conv2d_i8", "depthwise_i8"])
    assert len(table.rows) == 5


def test_durations_show_the_copying_apart() -> None:
    sizes = lowering.geometry((1, 8, 9, 9), (4, 8, 3, 3))
    (alone,) = direct.durations(sizes, "conv2d_i8", 100e6)
    compute, copying = direct.durations(sizes, "gemm", 100e6, "lowered")
    assert alone.kind == compute.kind == "model" and alone.part == compute.part == "compute"
    assert copying.part == "transfer" and copying.label == "lowered"
    assert compute.seconds == lowering.cost(sizes).cycles / 100e6


def test_words_are_signed() -> None:
    table = direct.words({"a": {"pad_y": 2**32 - 3, "rows": 7}}, ["rows", "pad_y"])
    assert [list(row) for row in table.rows] == [["rows", "7"], ["pad_y", "-3"]]
