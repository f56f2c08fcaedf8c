"""The lowering as lessons take it apart: the product of its pieces is torch's convolution."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from pynq_torch import timing
from pynq_torch.lessons import lowering
from pynq_torch.ops.conv import tiles


@settings(max_examples=50)
@given(data=st.data())
def test_the_matrix_times_the_weights_is_the_convolution(data: st.DataObject):
    draw, small = data.draw, st.integers(1, 3)
    groups, each, out_each = draw(small), draw(small), draw(small)
    kernel = (draw(small), draw(small))
    options: dict[str, Any] = {
        "stride": (draw(small), draw(small)),
        "padding": (draw(st.integers(0, 2)), draw(st.integers(0, 2))),
        "dilation": (draw(st.integers(1, 2)), draw(st.integers(1, 2))),
        "groups": groups,
    }
    torch.manual_seed(draw(st.integers(0, 99)))
    x = torch.randint(-9, 10, (2, groups * each, 7, 6)).double()
    w = torch.randint(-9, 10, (groups * out_each, each, *kernel)).double()
    sizes = lowering.geometry(x, w, **options)
    expected = torch.conv2d(x, w, None, **options)
    assert expected.shape == (2, w.shape[0], *sizes.out_size)
    for group in range(groups):
        padded, matrix = lowering.columns(x, sizes, group)
        part = slice(group * out_each, (group + 1) * out_each)
        product = matrix @ w[part].flatten(1).T
        found = product.reshape(2, *sizes.out_size, out_each).permute(0, 3, 1, 2)
        assert torch.equal(found, expected[:, part])
        assert padded.sum() == x.sum()
    assert sizes == lowering.geometry(x.shape, w.shape, **options)


def test_the_cost_counts_starts_multiplications_and_bytes():
    sizes = lowering.geometry((1, 64, 224, 224), (64, 64, 3, 3), padding=1)
    found = lowering.cost(sizes)
    assert found.mac == 224 * 224 * 64 * 64 * 9
    assert found.matrix_bytes == 224 * 224 * 64 * 9
    parts = list(tiles(sizes))
    assert found.starts == len(parts) > 1
    assert found.tile_bytes == max(t.last - t.first for t in parts) * 224 * 64 * 9
    whole = lowering.cost(sizes, tile_bytes=1 << 30)
    assert whole.starts == 1 and whole.tile_bytes == whole.matrix_bytes
    assert whole.cycles == timing.model_cycles("gemm", m=224 * 224, k=576, n=64)
    assert whole.cycles < found.cycles
    grouped = lowering.cost(lowering.geometry((1, 8, 9, 9), (16, 2, 3, 3), groups=4))
    assert (grouped.starts, grouped.mac) == (4, 7 * 7 * 16 * 18)
    each = timing.model_cycles("gemm", m=49, k=18, n=4)
    assert each is not None and grouped.cycles == 4 * each


def test_sizes_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"x has shape \(1, 2\); expected four dimensions"):
        lowering.geometry((1, 2), (1, 1, 1, 1))
    for weight in ((4, 3, 3, 3), (3, 1, 3, 3)):
        with pytest.raises(ValueError, match="x has 4 channels"):
            lowering.geometry((1, 4, 8, 8), weight, groups=2 if weight[1] == 1 else 1)
    with pytest.raises(ValueError, match="window of 3x3 with dilation"):
        lowering.geometry((1, 1, 4, 4), (1, 1, 3, 3), dilation=2)
