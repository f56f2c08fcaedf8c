"""cdist and dot on the PL: bounds of the error, layouts, what is not finite."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from device_helpers import closing, loaded, of, watched
from hypothesis import given, settings
from hypothesis import strategies as st

from pynq_torch.errors import ArgumentError
from pynq_torch.kernels.tables.reductions import EPS, dot_additions

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing", "overlay")]
__all__ = ["closing"]

INF, NAN = math.inf, math.nan
ORDERS = (0.0, 1.0, 2.0, INF, 0.5, 3.0)


@pytest.fixture
def overlay() -> Any:
    return loaded("reductions")


def randn(shape: Any, seed: int) -> torch.Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


def bound(p: float, n: int, exact: torch.Tensor) -> torch.Tensor:
    """Return the bound of `families.reductions`."""
    known = {0.0: 0.0, INF: 1.0, 1.0: n + 2, 2.0: n / 2 + 3}
    if p in known:
        return EPS * 1.01 * known[p] * exact + 1e-44
    log = exact.clamp(min=1e-30).log().abs()
    return EPS * 1.01 * ((n + 4) / p + 3 * log + 4) * exact + 1e-44


@settings(max_examples=40)
@given(
    batch=st.sampled_from([((), ()), ((2,), (2,)), ((3, 1), (2,)), ((2, 2), (2, 2)), ((4,), ())]),
    sizes=st.tuples(st.integers(1, 40), st.integers(1, 70), st.integers(1, 20) | st.just(70)),
    p=st.sampled_from(ORDERS),
    turned=st.booleans(),
    seed=st.integers(0, 2**31),
)
def test_distances_keep_their_bound(
    batch: Any, sizes: tuple[int, int, int], p: float, turned: bool, seed: int
) -> None:
    loaded("reductions")
    rows, cols, n = sizes
    a, b = randn((*batch[0], rows, n), seed), randn((*batch[1], cols, n), seed + 1)
    a[..., 0] = b[..., :1, 0] if batch[0] == batch[1] else 0
    x = a.mT.contiguous().to("pynq").mT if turned else a.to("pynq")
    y = b.repeat_interleave(2, -2).to("pynq")[..., ::2, :] if turned else b.to("pynq")
    with watched() as calls:
        found = torch.cdist(x, y, p)
    exact = torch.cdist(a.double(), b.double(), p, "donot_use_mm_for_euclid_dist")
    assert {c.where for c in of(calls, "_cdist_forward", "_euclidean_dist")} == {"PL"}
    assert found.shape == exact.shape and found.dtype is torch.float32
    assert bool(((found.cpu() - exact).abs() <= bound(p, n, exact)).all())


@settings(max_examples=30)
@given(
    n=st.integers(1, 5000),
    step=st.integers(1, 3),
    scale=st.sampled_from([1.0, 1e15, 1e-15]),
    seed=st.integers(0, 2**31),
)
def test_dot_products_keep_their_bound(n: int, step: int, scale: float, seed: int) -> None:
    loaded("reductions")
    a, b = randn((n, step), seed)[:, 0] * scale, randn(n, seed + 1)
    wide = torch.zeros(n, step, device="pynq")
    wide[:, 0] = a.to("pynq")
    with watched() as calls:
        found, also = torch.dot(wide[:, 0], b.to("pynq")), torch.vdot(wide[:, 0], b.to("pynq"))
    exact = torch.dot(a.double(), b.double())
    limit = EPS * 1.01 * (dot_additions(n) + 1) * torch.dot(a.double().abs(), b.double().abs())
    assert abs(found.cpu().double() - exact) <= limit and torch.equal(found.cpu(), also.cpu())
    kernels = [run.cu for c in of(calls, "dot", "vdot") for run in c.kernels]
    assert kernels == ["distance_0", "distance_0"]


@pytest.mark.parametrize("p", ORDERS)
def test_what_is_not_finite_is_what_torch_makes_of_it(overlay: Any, p: float) -> None:
    rows = torch.tensor(
        [[0.0, 1.0], [-0.0, NAN], [INF, 1.0], [-INF, 2.0], [3e38, -3e38], [1e-45, 0.0]]
    )
    mode = "donot_use_mm_for_euclid_dist"
    found = torch.cdist(rows.to("pynq"), rows.to("pynq"), p, mode)
    expected = torch.cdist(rows, rows, p, mode)
    torch.testing.assert_close(found.cpu(), expected, equal_nan=True)
    ones = torch.ones(2)
    for values in ([INF, 1.0], [NAN, 1.0], [INF, -INF], [3e38, 3e38]):
        x = torch.tensor(values)
        torch.testing.assert_close(
            torch.dot(x.to("pynq"), ones.to("pynq")).cpu(), torch.dot(x, ones), equal_nan=True
        )


def test_close_rows_keep_their_digits_where_a_matrix_product_loses_them(overlay: Any) -> None:
    a = randn((30, 8), 1) + 1000
    b = a + 1e-2
    exact = torch.cdist(a.double(), b.double())
    with watched() as calls:
        found = torch.cdist(a.to("pynq"), b.to("pynq")).cpu()
    (call,) = of(calls, "_euclidean_dist")
    assert call.where == "PL"
    assert bool(((found - exact).abs() <= bound(2.0, 8, exact)).all())
    assert (torch.cdist(a, b) - exact).abs().max() > 100 * (found - exact).abs().max()


def test_out_gradients_and_sizes_beyond_the_tile(overlay: Any) -> None:
    a, b = randn((33, 130), 2), randn((66, 130), 3)
    for p in (1.0, 2.0):
        on_cpu, on_pl = a.clone().requires_grad_(), a.to("pynq").requires_grad_()
        torch.cdist(on_cpu, b, p).sum().backward()
        torch.cdist(on_pl, b.to("pynq"), p).sum().backward()
        assert on_pl.grad is not None and on_cpu.grad is not None
        torch.testing.assert_close(on_pl.grad.cpu(), on_cpu.grad, rtol=1e-4, atol=1e-4)
    out = torch.empty((), device="pynq")
    with watched() as calls:
        assert torch.dot(a[0].to("pynq"), b[0].to("pynq"), out=out) is out
    torch.testing.assert_close(out.cpu(), torch.dot(a[0], b[0]))
    assert [c.where for c in of(calls, "dot")] == ["PL"]
    x, y = a[0].to("pynq").requires_grad_(), b[0].to("pynq")
    torch.dot(x, y).backward()
    assert x.grad is not None and torch.equal(x.grad.cpu(), b[0])


@pytest.mark.parametrize(
    ("function", "operands", "reason"),
    [
        (torch.dot, (torch.ones(3).double(),) * 2, "takes float32, found float64"),
        (torch.dot, (torch.ones(0),) * 2, "nothing to measure"),
        (torch.cdist, (torch.ones(2, 3).double(),) * 2, "takes float32, found float64"),
    ],
)
def test_the_cpu_does_the_rest_and_says_why(
    overlay: Any, function: Any, operands: Any, reason: str
) -> None:
    with watched() as calls:
        found = function(*(x.to("pynq") for x in operands))
    assert torch.equal(found.cpu(), function(*operands))
    assert any(c.where == "CPU" and reason in c.reason for c in calls)


def test_operands_that_do_not_fit_are_refused_in_the_cpus_words(overlay: Any) -> None:
    for function, shapes in ((torch.dot, ((3,), (4,))), (torch.cdist, ((2, 3), (2, 4)))):
        operands = [torch.ones(shape) for shape in shapes]
        with pytest.raises(RuntimeError) as theirs:
            function(*operands)
        with pytest.raises(RuntimeError) as ours:
            function(*(x.to("pynq") for x in operands))
        assert str(ours.value) == str(theirs.value)
    x = torch.ones(2, 3)
    with pytest.raises(RuntimeError, match="possible modes: 0, 1, 2, but was: 7"):
        torch.ops.aten._cdist_forward(x.to("pynq"), x.to("pynq"), 2.0, 7)


def test_the_driver_takes_cpu_tensors_and_refuses_with_a_sentence(overlay: Any) -> None:
    kernel, a, b = overlay.distance_f32, randn((2, 5, 6), 4), randn((7, 6), 5)
    for p in ORDERS:
        torch.testing.assert_close(kernel(a, b, p), torch.cdist(a, b.expand(2, 7, 6), p))
    torch.testing.assert_close(kernel.dot(a[0, :, 0], b[:5, 1]), torch.dot(a[0, :, 0], b[:5, 1]))
    for arguments, text in (
        ((a.double(), b), "expected torch.float32"),
        ((a, b[:, :5]), r"expected \[..., P, M\]"),
        ((a, randn((3, 7, 6), 6)), r"expected \[..., P, M\]"),
        ((a, b, -1.0), "p is -1.0; expected 0 or more"),
    ):
        with pytest.raises(ArgumentError, match=text):
            kernel(*arguments)
    with pytest.raises(ArgumentError, match=r"expected \(5,\)"):
        kernel.dot(a[0, :, 0], b[0])
