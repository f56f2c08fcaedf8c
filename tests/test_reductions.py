"""Reductions on the PL: bounds of the error, any dimensions and layouts, what is not finite."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from device_helpers import closing, loaded, of, watched
from hypothesis import given, settings
from hypothesis import strategies as st

from pynq_torch.errors import ArgumentError
from pynq_torch.kernels.reduce import norm_of
from pynq_torch.kernels.tables.reductions import EPS, LANES, REDUCE, block_additions
from pynq_torch.timing import model_cycles

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing", "overlay")]
__all__ = ["closing"]

INF, NAN = math.inf, math.nan
Function = Callable[..., Any]


@pytest.fixture
def overlay() -> Any:
    return loaded("reductions")


def randn(shape: Any, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def laid_out(values: torch.Tensor, order: int, step: int) -> torch.Tensor:
    """Return `values` on device "pynq", its memory in another order and with gaps."""
    if not values.dim():
        return values.to("pynq")
    turned = values.transpose(0, order % values.dim())
    wide = torch.zeros(*turned.shape[:-1], turned.shape[-1] * step, device="pynq")
    wide[..., ::step] = turned.to("pynq")
    return wide[..., ::step].transpose(0, order % values.dim())


# ---- bounds --------------------------------------------------------------------------------------


def sums_bound(x: torch.Tensor, count: int, dims: Any, scale: float = 1.0) -> torch.Tensor:
    return EPS * 1.01 * (block_additions(count) + 2) * x.abs().sum(dims) / scale + 1e-44


def spread_bound(x: torch.Tensor, count: int, dims: Any, exact: torch.Tensor) -> torch.Tensor:
    """Return the bound of var with correction 0 against exact arithmetic."""
    mean = x.mean(dims, keepdim=True)
    reach = (x.amax(dims, keepdim=True) - x.amin(dims, keepdim=True)).amax(dims)
    off = EPS * (mean.abs().amax(dims) + (block_additions(count) + 3) * reach)
    return off**2 + EPS * (block_additions(count) + 8) * (exact + off**2) + 1e-44


BOUNDS: dict[str, Callable[..., torch.Tensor]] = {
    "sum": lambda x, n, dims, exact: sums_bound(x, n, dims),
    "mean": lambda x, n, dims, exact: sums_bound(x, n, dims, n),
    "norm_1": lambda x, n, dims, exact: sums_bound(x, n, dims),
    "norm_2": lambda x, n, dims, exact: EPS * (block_additions(n) / 2 + 3) * exact,
    "norm_p": lambda x, n, dims, exact: (
        EPS * ((block_additions(n) + 4) / 3 + 3 * exact.log().abs() + 4) * exact
    ),
    "var": spread_bound,
    "prod": lambda x, n, dims, exact: EPS * 1.01 * (n + 2) * exact.abs(),
}
EXACT: dict[str, Function] = {
    "sum": torch.sum,
    "mean": torch.mean,
    "norm_1": lambda x, dims: torch.linalg.vector_norm(x, 1, dims),
    "norm_2": lambda x, dims: torch.linalg.vector_norm(x, 2, dims),
    "norm_p": lambda x, dims: torch.linalg.vector_norm(x, 3, dims),
    "var": lambda x, dims: torch.var(x, dims, correction=0),
    "amax": torch.amax,
    "amin": torch.amin,
    "norm_0": lambda x, dims: torch.linalg.vector_norm(x, 0, dims),
    "norm_inf": lambda x, dims: torch.linalg.vector_norm(x, INF, dims),
    "norm_-inf": lambda x, dims: torch.linalg.vector_norm(x, -INF, dims),
}
shapes = st.lists(st.integers(1, 6) | st.sampled_from([17, 40]), min_size=0, max_size=5).filter(
    lambda s: math.prod(s) < 20_000
)


@settings(max_examples=50)
@given(shape=shapes, data=st.data(), op=st.sampled_from(sorted(EXACT)), seed=st.integers(0, 2**31))
def test_any_dimensions_in_any_layout_keep_the_bound(
    shape: list[int], data: st.DataObject, op: str, seed: int
) -> None:
    loaded("reductions")
    dims = sorted(
        data.draw(
            st.sets(st.sampled_from(range(len(shape))), min_size=1) if shape else st.just({0})
        )
    )
    if not shape:
        dims = [0]
    x = randn(shape, seed) * data.draw(st.sampled_from([1.0, 1e4, 1e-4]))
    x = x + data.draw(st.sampled_from([0.0, 100.0])) * x.abs().amax()
    order, step = data.draw(st.integers(0, 4)), data.draw(st.integers(1, 3))
    with watched() as calls:
        found = EXACT[op](laid_out(x, order, step), dims)
    exact = EXACT[op](x.double(), dims)
    count = math.prod(shape[d] for d in dims) if shape else 1
    # Over values that are all the same, e.g. one, the squares are 0: then the CPU has the word.
    where = "CPU" if op in ("var", "norm_2", "norm_p") and not bool(exact.all()) else "PL"
    assert [c.where for c in calls if c.kernels] == [where]
    assert found.shape == exact.shape and found.dtype is torch.float32
    allowed = BOUNDS.get(op, lambda *_: torch.zeros(()))(x.double(), count, dims, exact)
    assert bool(((found.cpu() - exact).abs() <= allowed).all())


@settings(max_examples=20)
@given(
    n=st.integers(1, 60_000), scale=st.sampled_from([1.0, 1e30, 1e-30]), seed=st.integers(0, 2**31)
)
def test_long_sums_keep_the_bound_also_where_they_cancel(n: int, scale: float, seed: int) -> None:
    loaded("reductions")
    x = randn(n, seed) * scale
    x[n // 2 :] -= x[: n - n // 2].flip(0)
    found = x.to("pynq").sum().cpu().double()
    # Neighbours go to the lanes: their bound is the smaller one.
    depth = block_additions(n, lanes=LANES)
    assert depth <= block_additions(n)
    assert abs(found - x.double().sum()) <= EPS * 1.01 * depth * x.double().abs().sum() + 1e-44


@settings(max_examples=20)
@given(
    rows=st.integers(1, 40), n=st.integers(1, 60), dim=st.integers(0, 1), seed=st.integers(0, 2**31)
)
def test_products_keep_their_bound(rows: int, n: int, dim: int, seed: int) -> None:
    loaded("reductions")
    x = 1 + 0.2 * randn((rows, n), seed).clamp(-3, 3)
    exact = x.double().prod(dim)
    found = x.to("pynq").prod(dim).cpu()
    assert bool(((found - exact).abs() <= BOUNDS["prod"](x, x.shape[dim], dim, exact)).all())


@settings(max_examples=30)
@given(
    values=st.lists(
        st.sampled_from([0.0, -0.0, 1.0, -1.0, 2.5, INF, -INF, NAN]), min_size=1, max_size=70
    ),
    copies=st.sampled_from([1, 40]),
    order=st.integers(0, 1),
)
def test_extremes_are_the_first_and_nan_wins(values: list[float], copies: int, order: int) -> None:
    loaded("reductions")
    x = torch.tensor([values] * copies)
    x = x.t().contiguous() if order else x
    y, dim = x.to("pynq"), 0 if order else 1
    for name in ("max", "min"):
        found, expected = getattr(torch, name)(y, dim), getattr(torch, name)(x, dim)
        assert torch.equal(found.indices.cpu(), expected.indices)
        torch.testing.assert_close(found.values.cpu(), expected.values, equal_nan=True)
        place = getattr(torch, f"arg{name}")
        assert place(y).item() == place(x).item() and place(y).dtype is torch.int64
        full = getattr(torch, f"a{name}")
        torch.testing.assert_close(full(y).cpu(), full(x), equal_nan=True)


SPECIAL = (
    [INF, 1.0],
    [-INF, INF],
    [NAN, 1.0],
    [0.0, -0.0],
    [1e-45, 1e-45],
    [3e38, 3e38],
    [INF] * 20,
)


@pytest.mark.parametrize("row", SPECIAL)
@pytest.mark.parametrize(
    "op", ["sum", "mean", "prod", "norm_0", "norm_1", "norm_p", "var", "amax", "norm_-inf"]
)
def test_what_is_not_finite_is_what_torch_makes_of_it(row: list[float], op: str) -> None:
    function = EXACT.get(op, torch.prod)
    x = torch.tensor([row] * 20)
    for dim in (1, 0):
        y = x if dim else x.t().contiguous()
        torch.testing.assert_close(
            function(y.to("pynq"), dim).cpu(), function(y, dim), equal_nan=True, rtol=1e-5, atol=0
        )


# ---- every operator ------------------------------------------------------------------------------

CASES: dict[str, Function] = {
    "sum": lambda x: x.sum(),
    "sum.dim_IntList": lambda x: x.sum((0, -1), keepdim=True),
    "sum.dim_IntList, none named": lambda x: x.sum([]),
    "sum.dim_IntList, float32": lambda x: x.sum(1, dtype=torch.float32),
    "mean": lambda x: x.mean(),
    "mean.dim": lambda x: x.mean((0, 2)),
    "prod": lambda x: x.prod(),
    "prod.dim_int": lambda x: x.prod(1, keepdim=True),
    "max": lambda x: x.max(),
    "min": lambda x: x.min(),
    "max.dim": lambda x: x.max(1),
    "min.dim": lambda x: x.min(-1, keepdim=True),
    "amax": lambda x: x.amax(),
    "amin": lambda x: x.amin((0, 1), keepdim=True),
    "aminmax": lambda x: x.aminmax(dim=1),
    "argmax": lambda x: x.argmax(),
    "argmin": lambda x: x.argmin(1, keepdim=True),
    "var.correction": lambda x: x.var(),
    "var.correction, 0": lambda x: x.var(1, correction=0),
    "std.correction": lambda x: x.std((0, 2), keepdim=True),
    "std.correction, 1.5": lambda x: x.std(1, correction=1.5),
    "var_mean.correction": lambda x: torch.var_mean(x, 1),
    "std_mean.correction": lambda x: torch.std_mean(x),
    "linalg_vector_norm": lambda x: x.norm(),
    "linalg_vector_norm, 3": lambda x: x.norm(3, 1),
    "linalg_vector_norm, -2.5": lambda x: torch.linalg.vector_norm(x, -2.5, (0, 1)),
    "linalg_vector_norm, matrix": lambda x: torch.linalg.matrix_norm(x),
    "norm.ScalarOpt_dim": lambda x: torch.nn.functional.pairwise_distance(x, x + 1),
    "norm.Scalar": lambda x: torch.ops.aten.norm.Scalar(x, 3),
    "norm.ScalarOpt_dim_dtype": lambda x: torch.ops.aten.norm.ScalarOpt_dim_dtype(
        x, None, [1], True, dtype=torch.float32
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("layout", ["row-major", "transposed", "steps", "expanded"])
def test_operators_give_what_the_cpu_gives(overlay: Any, case: str, layout: str) -> None:
    x = randn((4, 5, 6), 1) / 2 + 1
    looks: dict[str, Function] = {
        "row-major": lambda t: t,
        "transposed": lambda t: t.permute(2, 0, 1),
        "steps": lambda t: t[::2, :, ::3],
        "expanded": lambda t: t[:1].expand(4, 5, 6),
    }
    look = looks[layout]
    with watched() as calls:
        found = CASES[case](look(x.to("pynq")))
    expected = CASES[case](look(x))
    torch.testing.assert_close(
        torch.utils._pytree.tree_map(lambda t: t.cpu(), found), expected, rtol=2e-6, atol=2e-6
    )
    name = case.partition(",")[0]
    assert [(c.where, c.reason) for c in calls if c.name == f"aten::{name}"] == [("PL", "")]
    run = next(c for c in calls if c.name == f"aten::{name}").kernels[0]
    assert run.cu == "reduce_0"


@pytest.mark.parametrize("place", [0, 5])
def test_an_infinite_running_mean_is_the_cpus(overlay: Any, place: int) -> None:
    x = randn((3, 6), 2)
    x[1, place] = float("inf")
    found, expected = torch.var_mean(x.to("pynq"), 1), torch.var_mean(x, 1)
    for mine, its in zip(found, expected, strict=True):
        assert torch.equal(mine.cpu().nan_to_num(7.0), its.nan_to_num(7.0))


OUT: dict[str, Function] = {
    "sum": lambda x, out: torch.sum(x, 1, out=out),
    "mean": lambda x, out: torch.mean(x, 1, out=out),
    "prod": lambda x, out: torch.prod(x, 1, out=out),
    "amax": lambda x, out: torch.amax(x, 1, out=out),
    "var": lambda x, out: torch.var(x, 1, correction=0, out=out),
    "std": lambda x, out: torch.std(x, 1, out=out),
    "linalg_vector_norm": lambda x, out: torch.linalg.vector_norm(x, 1, 1, out=out),
}


@pytest.mark.parametrize("name", OUT)
def test_out(overlay: Any, name: str) -> None:
    x = randn((4, 5, 6), 2)
    expected, around = OUT[name](x, torch.empty(4, 6)), torch.full((8, 6), 9.0, device="pynq")
    with watched() as calls:
        result = OUT[name](x.to("pynq"), around[::2])
    torch.testing.assert_close(around[::2].cpu(), expected)
    assert result.data_ptr() == around.data_ptr() and bool((around[1::2] == 9).all())
    assert [c.where for c in of(calls, name)] == ["PL"]


def test_out_of_two_results_and_of_another_size(overlay: Any) -> None:
    x = randn((4, 5), 3)
    values, indices = (
        torch.empty(4, device="pynq"),
        torch.empty(4, device="pynq", dtype=torch.int64),
    )
    with watched() as calls:
        torch.max(x.to("pynq"), 1, out=(values, indices))
        torch.argmin(x.to("pynq"), 1, out=(places := torch.empty_like(indices)))
    assert torch.equal(values.cpu(), x.max(1).values) and torch.equal(indices.cpu(), x.argmax(1))
    assert torch.equal(places.cpu(), x.argmin(1))
    assert [c.where for c in of(calls, "max", "argmin")] == ["PL", "PL"]
    small = torch.empty(0, device="pynq")
    torch.sum(x.to("pynq"), 1, out=small)
    torch.testing.assert_close(small.cpu(), x.sum(1))


# ---- long, many dimensions, gradients ------------------------------------------------------------


def test_more_dimensions_than_the_kernel_has(overlay: Any) -> None:
    x = randn((2, 3, 2, 3, 2, 3, 2, 2), 4)
    for dims in ((0, 2, 4, 6), (1, 3, 5, 7), (0,), (7,), (0, 7)):
        with watched() as calls:
            found, places = x.to("pynq").sum(dims), x.to("pynq").argmax(dims[0])
        torch.testing.assert_close(found.cpu(), x.sum(dims), rtol=1e-5, atol=1e-5)
        assert torch.equal(places.cpu(), x.argmax(dims[0]))
        assert {c.where for c in of(calls, "sum", "argmax")} == {"PL"}
    y = randn((3, 4, 5, 6), 5)[::2, ::2, ::2, ::2]
    assert y.to("pynq").argmax().item() == y.argmax().item()
    gaps = torch.zeros(3, 4, 5, 6, device="pynq")[::2, ::2, ::2, ::2]
    gaps.copy_(y)
    assert gaps.argmax().item() == y.argmax().item()
    torch.testing.assert_close(gaps.sum().cpu(), y.sum())


@pytest.mark.parametrize(
    ("shape", "dim"), [((3, 5000), 1), ((5000, 3), 0), ((200, 1500), 0), ((1500, 2), 1)]
)
def test_sizes_beyond_tile_and_block(overlay: Any, shape: tuple[int, ...], dim: int) -> None:
    x = randn(shape, 6)
    y = x.to("pynq")
    limit = sums_bound(x.double(), shape[dim], dim)
    assert bool(((y.sum(dim).cpu() - x.double().sum(dim)).abs() <= limit).all())
    assert torch.equal(y.argmin(dim).cpu(), x.argmin(dim))
    torch.testing.assert_close(y.std(dim).cpu(), x.std(dim))


def test_the_variance_of_values_far_from_zero(overlay: Any) -> None:
    x = (randn((4, 3000), 7) + 1e4).float()
    for y, dim in ((x, 1), (x.t().contiguous(), 0)):
        exact = y.double().var(dim)
        found = y.to("pynq").var(dim).cpu()
        torch.testing.assert_close(found.double(), exact, rtol=2e-6, atol=0)


SQUARED: dict[str, Function] = {
    "var": lambda x: x.var(0),
    "std": lambda x: x.std(0, correction=0.5),
    "std_mean": lambda x: torch.std_mean(x, 0),
    "norm": lambda x: x.norm(dim=0),
    "vector_norm": lambda x: torch.linalg.vector_norm(x, 3, 0),
    "below 1": lambda x: torch.linalg.vector_norm(x, 0.5, 0),
    "negative": lambda x: torch.linalg.vector_norm(x, -2, 0),
    "negative, below 1": lambda x: torch.linalg.vector_norm(x, -0.5, 0),
    "one element": lambda x: x[:1].norm(dim=0),
}


@settings(max_examples=150)
@given(
    st.sampled_from(sorted(SQUARED)),
    st.lists(st.floats(0.5, 1.0, width=32), min_size=2, max_size=9),
    st.integers(-140, 127),
    st.booleans(),
)
def test_squares_beyond_float32_are_no_reason_for_another_result(
    case: str, values: list[float], exponent: int, beside: bool
) -> None:
    """Values and result are ordinary, only what lies between would be infinite, 0 or coarse."""
    loaded("reductions")
    x = torch.tensor(values)[:, None] * 2.0 ** torch.tensor([exponent] + [0] * beside)
    pick = torch.utils._pytree.tree_leaves
    for found, expected in zip(
        pick(SQUARED[case](x.to("pynq"))), pick(SQUARED[case](x)), strict=True
    ):
        # What a mean may be off is in the variance of values that are nearly the same.
        atol = float(x[:, 0].abs().max()) * 1e-6 if case.startswith(("std", "var")) else 0.0
        torch.testing.assert_close(found.cpu(), expected, rtol=1e-5, atol=min(atol, 1e30))


@pytest.mark.parametrize(
    ("values", "function"),
    [
        ([1e20, 2e20, 3e20], torch.std),
        ([1e-25, 2e-25, 4e-25], torch.std),
        ([1e-25, 2e-25, 4e-25], torch.std_mean),
        ([1e-38], torch.linalg.vector_norm),
        ([1e30], torch.linalg.vector_norm),
        ([0.0, 0.0], torch.linalg.vector_norm),
        ([3.0, 3.0], torch.var),
    ],
)
def test_squares_beyond_float32_are_the_cpus(
    overlay: Any, values: list[float], function: Function
) -> None:
    x = torch.tensor(values)
    y = x.to("pynq")
    with watched() as calls:
        found = function(y)
    torch.testing.assert_close(
        torch.utils._pytree.tree_map(lambda t: t.cpu(), found), function(x), rtol=0, atol=0
    )
    assert calls[0].where == "CPU" and "squares" in calls[0].reason


@pytest.mark.parametrize(
    "name", ["sum", "mean.dim", "amax", "max.dim", "var.correction", "linalg_vector_norm"]
)
def test_gradients(overlay: Any, name: str) -> None:
    x = randn((4, 5, 6), 8)
    x_cpu, x_pl = x.clone().requires_grad_(), x.to("pynq").requires_grad_()
    for leaf in (x_cpu, x_pl):
        result = CASES[name](leaf)
        (result[0] if isinstance(result, tuple) else result).sum().backward()
    assert x_pl.grad is not None and x_cpu.grad is not None
    torch.testing.assert_close(x_pl.grad.cpu(), x_cpu.grad)


@pytest.mark.parametrize("size", [1, 16, 100, 5000])
def test_no_model_promises_more_than_one_element_a_cycle(size: int) -> None:
    assert model_cycles("reduce_f32", results=3, length=size) >= 3 * size
    assert model_cycles("softmax_f32", rows=3, length=size) >= 3 * 3 * size
    assert model_cycles("distance_f32", rows=3, cols=size, length=7) >= 3 * size * 7


# ---- what does not fit ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("function", "x", "reason"),
    [
        (torch.sum, torch.arange(6), "takes float32, found int64"),
        (torch.sum, torch.ones(3).double(), "found float64"),
        (lambda x: x.sum(dtype=torch.float64), torch.ones(3), "found float64"),
        (lambda x: x.sum(1), torch.ones(3, 0), "nothing to reduce"),
        (torch.amax, torch.ones(3, dtype=torch.int8), "found int8"),
        (lambda x: x.var(1, correction=0), torch.ones(3, 2).bfloat16(), "found bfloat16"),
    ],
)
def test_the_cpu_does_the_rest_and_says_why(
    overlay: Any, function: Any, x: Any, reason: str
) -> None:
    with watched() as calls:
        found = function(x.to("pynq"))
    assert torch.equal(found.cpu(), function(x))
    assert any(c.where == "CPU" and reason in c.reason for c in calls)


def test_wrong_dimensions_are_refused_in_the_cpus_words(overlay: Any) -> None:
    x = torch.ones(2, 3)
    for function, error in (
        (lambda t: t.sum(2), IndexError),
        (lambda t: t.sum((0, 0)), RuntimeError),
        (lambda t: t.argmax(-3), IndexError),
        (lambda t: t.view([1] * 63 + [2, 3]).amax(-1), RuntimeError),
        (lambda t: t.new_empty(0).max(), RuntimeError),
        (lambda t: torch.aminmax(t, dim=0, out=(t[0], t[1])), RuntimeError),
        (lambda t: torch.ops.aten.std.correction(t, [0], correction=1j), RuntimeError),
    ):
        with pytest.raises(error) as theirs:
            function(x)
        with pytest.raises(error) as ours:
            function(x.to("pynq"))
        assert str(ours.value) == str(theirs.value)
    with pytest.warns(UserWarning, match="degrees of freedom"):
        assert math.isnan(torch.ones(1, device="pynq").var().item())


def test_the_driver_takes_cpu_tensors_and_refuses_with_a_sentence(overlay: Any) -> None:
    kernel, x = overlay.reduce_f32, randn((3, 4, 5), 9)
    torch.testing.assert_close(kernel(x), x.sum())
    torch.testing.assert_close(kernel(x.transpose(0, 2), (0, -1), "mean"), x.mean((0, 2)))
    torch.testing.assert_close(kernel(x, 1, "std"), x.std(1))
    torch.testing.assert_close(
        kernel(x, 1, norm_of(1.5), p=1.5), torch.linalg.vector_norm(x, 1.5, 1)
    )
    values, places = kernel(x, 2, "max")
    assert torch.equal(values, x.max(2).values) and torch.equal(places, x.max(2).indices)
    wide = randn((2, 3, 2, 3, 2, 3, 2, 2), 4)
    torch.testing.assert_close(kernel(wide, (0, 2, 4, 6)), wide.sum((0, 2, 4, 6)))
    assert {norm_of(p) for p in (0, 1, 2, INF, -INF, 0.5)} <= set(REDUCE)
    for arguments, text in (
        ((x.double(),), "expected torch.float32"),
        ((x, 3), "expected dimensions of x, -3 to 2"),
        ((x, 0, "median"), "op is 'median'; expected one of sum"),
        ((x[:0],), "no element"),
    ):
        with pytest.raises(ArgumentError, match=text):
            kernel(*arguments)


def test_without_the_overlay_the_cpu_does_it(overlay: Any) -> None:
    loaded("vadd")
    x = randn((3, 4), 10)
    with watched() as calls:
        assert torch.equal(x.to("pynq").sum(1).cpu(), x.sum(1))
    (call,) = of(calls, "sum")
    assert call.where == "CPU" and "pynq_torch.load('reductions')" in call.reason
