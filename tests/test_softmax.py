"""softmax and its kin on the PL: bounds of the error, layouts, what is not finite, gradients."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from device_helpers import closing, loaded, of, watched
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from pynq_torch.errors import ArgumentError
from pynq_torch.kernels.tables.reductions import EPS, EXP_RANGE, SOFTMAX, additions

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing", "overlay")]
__all__ = ["closing"]

INF, NAN = math.inf, math.nan
FORWARD: dict[str, Callable[..., torch.Tensor]] = {
    "softmax": torch.softmax,
    "log_softmax": torch.log_softmax,
    "logsumexp": torch.logsumexp,
}
#: The names of the operators as they arrive.
ARRIVES = {"softmax": "_softmax", "log_softmax": "_log_softmax", "logsumexp": "logsumexp"}


@pytest.fixture
def overlay() -> Any:
    return loaded("reductions")


def laid_out(values: torch.Tensor, order: int, step: int) -> torch.Tensor:
    """Return `values` on device "pynq", its memory in another order and with gaps."""
    turned = values.transpose(0, order % values.dim())
    wide = torch.zeros(*turned.shape[:-1], turned.shape[-1] * step, device="pynq")
    wide[..., ::step] = turned.to("pynq")
    return wide[..., ::step].transpose(0, order % values.dim())


def bound(op: str, x: torch.Tensor, exact: torch.Tensor, dim: int) -> torch.Tensor:
    """Return the bound of `families.reductions` for each element, in float64."""
    n = x.shape[dim]
    top = x.amax(dim, keepdim=True).double()
    below = (x.double() - top).abs()
    spread = below.clamp(max=EXP_RANGE).amax(dim, keepdim=True)
    depth = additions(n, column=True)
    if op == "softmax":
        return EPS * exact * (depth + below + spread + 6) + 2.0**-149 * (depth + 2)
    scale = top.abs() + below if op == "log_softmax" else top.abs()
    room = EPS * (depth + 2 * below + spread + 8 + 2 * scale + exact.abs().reshape(scale.shape))
    return room.amax(dim, keepdim=True) if op == "logsumexp" else room


shapes = st.lists(st.integers(1, 6) | st.just(33), min_size=1, max_size=4).filter(
    lambda s: math.prod(s) < 5000
)


@settings(max_examples=50)
@given(
    shape=shapes,
    data=st.data(),
    op=st.sampled_from(sorted(FORWARD)),
    scale=st.sampled_from([1e-20, 1.0, 30.0, 1e5]),
    seed=st.integers(0, 2**31),
)
def test_forward_keeps_its_bound(
    shape: list[int], data: st.DataObject, op: str, scale: float, seed: int
) -> None:
    dim = data.draw(st.integers(-len(shape), len(shape) - 1))
    order, step = data.draw(st.integers(0, 3)), data.draw(st.integers(1, 3))
    loaded("reductions")
    x = scale * torch.randn(shape, generator=torch.Generator().manual_seed(seed))
    keep = {"keepdim": True} if op == "logsumexp" else {}
    with watched() as calls:
        found = FORWARD[op](laid_out(x, order, step), dim, **keep)
    exact = FORWARD[op](x.double(), dim, **keep)
    assert [c.where for c in of(calls, ARRIVES[op])] == ["PL"]
    assert found.shape == exact.shape and found.dtype is torch.float32 and found.is_contiguous()
    assert bool(((found.cpu() - exact).abs() <= bound(op, x, exact, dim)).all())


@settings(max_examples=25)
@given(
    op=st.sampled_from(["softmax", "log_softmax"]),
    rows=st.integers(1, 40),
    n=st.integers(1, 40),
    dim=st.integers(0, 1),
    seed=st.integers(0, 2**31),
)
def test_gradients_keep_their_bound(op: str, rows: int, n: int, dim: int, seed: int) -> None:
    loaded("reductions")
    generator = torch.Generator().manual_seed(seed)
    x, gradient = (torch.randn(rows, n, generator=generator) for _ in range(2))
    x_pl = x.to("pynq").requires_grad_()
    with watched() as calls:
        result = FORWARD[op](x_pl, dim)
        result.backward(gradient.to("pynq"))
    assert [c.where for c in of(calls, f"_{op}", f"_{op}_backward_data")] == ["PL", "PL"]
    y, g = result.detach().cpu().double(), gradient.double()
    terms = g * y if op == "softmax" else g
    total, room = terms.sum(dim, keepdim=True), terms.abs().sum(dim, keepdim=True) + g.abs()
    exact = y * (g - total) if op == "softmax" else g - y.exp() * total
    assert x_pl.grad is not None
    limit = EPS * (additions(x.shape[dim], column=True) + 4) * room
    assert bool(((x_pl.grad.cpu() - exact).abs() <= limit + 1e-40).all())


@pytest.mark.parametrize(
    "row",
    [
        *([INF, 1.0], [-INF, -INF], [-INF, 1.0], [NAN, 1.0], [1.0, NAN, INF], [INF, INF]),
        *([INF, -INF], [3e38, -3e38], [-0.0, 0.0], [1e-45, -1e-45], [1e4] * 20, [-INF] * 20),
    ],
)
@pytest.mark.parametrize("op", FORWARD)
@pytest.mark.parametrize("dim", [0, 1])
def test_what_is_not_finite_is_what_torch_makes_of_it(row: list[float], op: str, dim: int) -> None:
    x = torch.tensor([row, [float(i) for i in range(len(row))]])
    x = x if dim else x.t().repeat(1, 20)
    found, expected = FORWARD[op](x.to("pynq"), dim), FORWARD[op](x, dim)
    torch.testing.assert_close(found.cpu(), expected, equal_nan=True, rtol=1e-5, atol=1e-6)


def test_rows_longer_than_the_tile_and_side_by_side(overlay: Any) -> None:
    for shape, dim in (((2, 3000), 1), ((3, 2500), 0), ((2, 5, 1100), 1), ((2500, 2), 0)):
        x = torch.randn(shape)
        for op, function in FORWARD.items():
            with watched() as calls:
                found = function(x.to("pynq"), dim)
            torch.testing.assert_close(found.cpu(), function(x, dim), rtol=1e-5, atol=2e-6)
            assert [c.where for c in of(calls, ARRIVES[op])] == ["PL"]


def test_logsumexp_over_several_dimensions_out_and_no_dimension_at_all(overlay: Any) -> None:
    x = torch.randn(3, 4, 5)
    for dims in ((0, 2), (1, 2), (0, 1, 2), (-1,)):
        for keep in (False, True):
            found = torch.logsumexp(x.to("pynq"), dims, keepdim=keep)
            torch.testing.assert_close(found.cpu(), torch.logsumexp(x, dims, keepdim=keep))
    out, other = torch.empty(3, 4, 5, device="pynq"), torch.empty(3, 4, 5, device="pynq")
    with watched() as calls:
        assert torch.softmax(x.to("pynq"), 1, out=out) is out
        torch._log_softmax(x.to("pynq"), 1, False, out=other)
    torch.testing.assert_close(out.cpu(), torch.softmax(x, 1))
    torch.testing.assert_close(other.cpu(), torch.log_softmax(x, 1))
    assert [c.where for c in of(calls, "softmax", "_log_softmax")] == ["PL", "PL"]
    gradient = torch.randn(3, 4, 5)
    with watched() as calls:
        for function in (torch._softmax_backward_data, torch._log_softmax_backward_data):
            expected = function(gradient, x, 1, torch.float32)
            name = "grad_input" if function is torch._softmax_backward_data else "out"
            into = {name: torch.empty(3, 4, 5, device="pynq")}
            function(gradient.to("pynq"), x.to("pynq"), 1, torch.float32, **into)
            torch.testing.assert_close(into[name].cpu(), expected, rtol=1e-5, atol=1e-5)
    names = "_softmax_backward_data", "_log_softmax_backward_data"
    assert [c.where for c in of(calls, *names)] == ["PL", "PL"]
    assert torch.softmax(torch.tensor(3.0, device="pynq"), 0).item() == 1.0


def test_cross_entropy_runs_its_softmax_on_the_pl_forwards_and_backwards(overlay: Any) -> None:
    x, target = torch.randn(8, 10), torch.arange(8)
    on_cpu, on_pl = x.clone().requires_grad_(), x.to("pynq").requires_grad_()
    functional.cross_entropy(on_cpu, target).backward()
    with watched() as calls:
        functional.cross_entropy(on_pl, target.to("pynq")).backward()
    places = [(c.op, c.where) for c in of(calls, "_log_softmax", "_log_softmax_backward_data")]
    assert [where for _, where in places] == ["PL", "PL"]
    assert on_pl.grad is not None and on_cpu.grad is not None
    torch.testing.assert_close(on_pl.grad.cpu(), on_cpu.grad)


@pytest.mark.parametrize(
    ("x", "reason"),
    [
        (torch.randn(3, 4).double(), "takes float32, found float64"),
        (torch.randn(0, 4), "nothing to add up"),
    ],
)
def test_the_cpu_does_the_rest_and_says_why(x: torch.Tensor, reason: str) -> None:
    with watched() as calls:
        found = torch.softmax(x.to("pynq"), 1)
    assert torch.equal(found.cpu(), torch.softmax(x, 1))
    (call,) = of(calls, "_softmax")
    assert call.where == "CPU" and reason in call.reason
    with pytest.raises(IndexError, match="Dimension out of range"):
        torch.softmax(x.to("pynq"), 2)


def test_without_the_overlay_the_cpu_does_it(overlay: Any) -> None:
    loaded("vadd")
    x = torch.randn(3, 4)
    with watched() as calls:
        assert torch.equal(torch.softmax(x.to("pynq"), 1).cpu(), torch.softmax(x, 1))
    (call,) = of(calls, "_softmax")
    assert call.where == "CPU" and "pynq_torch.load('reductions')" in call.reason


def test_the_driver_takes_cpu_tensors_and_refuses_with_a_sentence(overlay: Any) -> None:
    softmax = overlay.softmax_f32
    x = torch.randn(3, 4, 5)
    y = x.softmax(1)
    gradient = torch.randn(3, 4, 5)
    assert set(SOFTMAX) >= set(FORWARD)
    for op, function in FORWARD.items():
        torch.testing.assert_close(softmax(x, 1, op), function(x, 1))
        torch.testing.assert_close(
            softmax(x.transpose(0, 2), -1, op), function(x.transpose(0, 2), -1)
        )
    expected = torch._softmax_backward_data(gradient, y, 1, torch.float32)
    torch.testing.assert_close(softmax(gradient, 1, "softmax_backward", y), expected)
    assert softmax(torch.empty(3, 0), 0, "logsumexp").shape == (0,)
    for arguments, text in (
        ((x.double(),), "expected torch.float32"),
        ((x, 3), "dim is 3"),
        ((x, 0, "softplus"), "op is 'softplus'; expected one of softmax"),
        ((x, 0, "softmax_backward"), "takes the result of the forward operator"),
        ((x, 0, "softmax", y), "takes none as result"),
        ((x, 0, "softmax_backward", y[:2]), "expected \\(3, 4, 5\\)"),
    ):
        with pytest.raises(ArgumentError, match=text):
            softmax(*arguments)
