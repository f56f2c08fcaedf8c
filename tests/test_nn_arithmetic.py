"""The steps of int8 tensors: formulas as documented, on every path, to the bit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

import pynq_torch
from pynq_torch.nn import arithmetic
from pynq_torch.ops import quantise
from pynq_torch.ops.quantise import SMALL, ZERO_BELOW, write_columns, write_steps

FLOAT32_MAX = torch.finfo(torch.float32).max


@pytest.fixture(scope="module", autouse=True)
def board() -> Iterator[Any]:
    board = pynq_torch.use_board("csim")
    yield board
    board.close()


def steps_of(x: torch.Tensor, scale: float | None = None) -> tuple[torch.Tensor, float]:
    """The documented formula, with torch alone."""
    largest = float(x.abs().max())
    if scale is None:
        factor = 127 / largest if largest else 1.0
        wide = x.double() if factor > FLOAT32_MAX else x
        return (wide * factor).round().to(torch.int8), largest / 127 if largest else 1.0
    return (x * (1 / scale)).round().clamp(-128, 127).to(torch.int8), scale


values = st.floats(-1, 1, width=32) | st.sampled_from([0.0, -0.0, 0.5 / 127, 1.5 / 127, 1e-30])
sizes = st.sampled_from([1e-44, 1e-38, 3e-37, 1e-6, 1.0, 127.0, 1e30, FLOAT32_MAX])


@given(x=st.lists(values, min_size=1, max_size=9), size=sizes, long=st.booleans())
@settings(max_examples=300)
def test_dynamic_steps(x: list[float], size: float, long: bool) -> None:
    given = (torch.tensor(x, dtype=torch.float64) * size).float()
    if long:  # torch does it, numpy the short ones
        given = given.repeat(SMALL // len(x) + 2)
    out = torch.empty(given.shape, dtype=torch.int8)
    scale = write_steps(given, out)
    expected, expected_scale = steps_of(given)
    assert torch.equal(out, expected)
    assert scale == expected_scale
    error = (given.double() - out.double() * scale).abs().max()
    assert float(error) <= scale * (0.5 + 2**-15) or not given.any()


@given(
    x=st.lists(values, min_size=1, max_size=9),
    size=sizes,
    scale=st.floats(2.0**-120, 2.0**126, width=32),
    long=st.booleans(),
)
@example(x=[0.875], size=3.4028234663852886e38, scale=0.875, long=False)  # overflows by rounding
@settings(max_examples=300)
def test_steps_of_a_given_scale(x: list[float], size: float, scale: float, long: bool) -> None:
    given = (torch.tensor(x, dtype=torch.float64) * size).float()
    if long:
        given = given.repeat(SMALL // len(x) + 2)
    out = torch.empty(given.shape, dtype=torch.int8)
    assert write_steps(given, out, scale) == scale
    assert torch.equal(out, steps_of(given, scale)[0])


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("count", [3, SMALL + 1])
@pytest.mark.parametrize("scale", [None, 0.1])
def test_what_is_not_finite_is_told(bad: float, count: int, scale: float | None) -> None:
    x = torch.zeros(count)
    x[1] = bad
    assert write_steps(x, torch.empty(count, dtype=torch.int8), scale) is None
    matrix = torch.ones(4, 3)
    matrix[2, 1] = bad
    assert write_columns(matrix, torch.empty(4, 3, dtype=torch.int8)) is None


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_other_floats_are_float32_first(dtype: torch.dtype) -> None:
    x = torch.linspace(-3, 2.7, 333).to(dtype)
    out = torch.empty(333, dtype=torch.int8)
    write_steps(x, out)
    assert torch.equal(out, steps_of(x.float())[0])


@given(
    rows=st.integers(1, 5),
    columns=st.lists(sizes | st.just(ZERO_BELOW), min_size=1, max_size=5),
    data=st.data(),
)
@settings(max_examples=200)
def test_columns(rows: int, columns: list[float], data: st.DataObject) -> None:
    listed = st.lists(values, min_size=rows, max_size=rows)
    x = torch.tensor([data.draw(listed) for _ in columns], dtype=torch.float64).t()
    x = (x * torch.tensor(columns, dtype=torch.float64)).float()
    out = torch.empty(x.shape, dtype=torch.int8)
    scale = write_columns(x, out)
    assert scale is not None
    for j in range(len(columns)):
        column, largest = x[:, j], x[:, j].abs().max()
        if largest < ZERO_BELOW:
            assert scale[j] == 1
            assert not out[:, j].any()
        else:
            assert scale[j] == largest / 127
            assert torch.equal(out[:, j], (column * (127 / largest)).round().to(torch.int8))


@given(
    m=st.integers(1, 4),
    k=st.integers(1, 6),
    n=st.integers(1, 4),
    seed=st.integers(0, 2**16),
    size=st.sampled_from([1e-40, 1e-30, 1e-3, 1.0, 1e4]),
)
@settings(max_examples=100)
def test_the_error_stays_in_its_bound(m: int, k: int, n: int, seed: int, size: float) -> None:
    random = torch.Generator().manual_seed(seed)
    a, b = torch.randn(m, k, generator=random), torch.randn(k, n, generator=random) * size
    left, right = quantise.per_tensor(a), quantise.per_column(b)
    sums = left.values.cpu().double() @ right.values.cpu().double()
    found = sums.float() * (right.scale * left.scale)
    error = (found.double() - a.double() @ b.double()).abs()
    assert bool((error <= quantise.error_bound(a, b)).all())


@pytest.mark.parametrize("depth", [1, 1000, 131_071, 131_072])
@pytest.mark.parametrize("sign", [-1, 1])
def test_a_bias_leaves_the_sums_room_in_int32(depth: int, sign: int) -> None:
    """A sum of `depth` products is at most ``depth * 2**14``, which -128 * -128 reaches."""
    scale, room = torch.tensor([0.5, 0.5]), 2**31 - 1 - depth * 2**14
    assert (arithmetic.requantisation(scale, 2.0, 1.0, None, depth) is None) == (room < 0)
    for bias, fits in ((room, room >= 0), (room + 1, False)):
        given = torch.tensor([0.0, sign * bias], dtype=torch.float64)
        found = arithmetic.requantisation(scale, 2.0, 1.0, given, depth)
        assert (found is not None) == fits
        if found is not None:
            assert found[1] is not None and found[1].tolist() == [0, sign * bias]


@pytest.mark.parametrize(("bias", "fits"), [(1e30, False), (float("nan"), False), (1.0, True)])
def test_a_bias_that_int32_cannot_hold(bias: float, fits: bool) -> None:
    found = arithmetic.requantisation(torch.ones(1), 1.0, 1.0, torch.tensor([bias]), 8)
    assert (found is not None) == fits
