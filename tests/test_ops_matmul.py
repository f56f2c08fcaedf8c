"""float32 products on device "pynq": within the stated bound, in any layout, and done by the PL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from device_helpers import closing, loaded, of, watched
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

from pynq_torch import buffers
from pynq_torch.errors import ArgumentError

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

EPS = 2.0**-23
PRODUCTS = ("mm", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_", "mv", "addmv", "addmv_", "dot")


@pytest.fixture
def lenet() -> Any:
    return loaded("lenet")


def values(*shape: int, seed: int = 0, special: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    found = torch.randn(shape, generator=generator)
    if special and found.numel():
        odd = torch.tensor([float("inf"), float("-inf"), float("nan"), 0.0, -0.0, 1e38, 1e-42])
        where = torch.randint(0, 6, shape, generator=generator) == 0
        picked = torch.randint(0, len(odd), shape, generator=generator)
        found = torch.where(where, odd[picked], found)
    return found


def row_major(values: torch.Tensor) -> torch.Tensor:
    return values.to("pynq")


def column_major(values: torch.Tensor) -> torch.Tensor:
    return values.mT.contiguous().to("pynq").mT


def every_other(values: torch.Tensor) -> torch.Tensor:
    *batch, rows, columns = values.shape
    base = torch.full((*batch, 2 * rows, 3 * columns), 77.0, device="pynq")
    base[..., ::2, ::3] = values.to("pynq")
    return base[..., ::2, ::3]


def one_row(values: torch.Tensor) -> torch.Tensor:
    """All rows are one in memory; the values are changed to be so."""
    values.copy_(values[..., :1, :].expand(values.shape).clone())
    return values[..., :1, :].to("pynq").expand(values.shape)


LAYOUTS = (row_major, column_major, every_other, one_row)
sizes = st.integers(1, 30) | st.sampled_from([1, 8, 64, 65, 129])


def check(found: torch.Tensor, a: torch.Tensor, b: torch.Tensor, more: int = 2) -> None:
    """Hold a product against the exact one and the bound of its kernel."""
    exact = a.double() @ b.double()
    bound = (a.shape[-1] + more) * EPS * (a.double().abs() @ b.double().abs())
    error = (found.cpu().double() - exact).abs()
    assert bool((error <= bound).all()), float((error - bound).max())


@settings(max_examples=50)
@given(
    m=sizes,
    k=sizes,
    n=sizes,
    batch=st.integers(0, 3),
    left=st.sampled_from(LAYOUTS),
    right=st.sampled_from(LAYOUTS),
    seed=st.integers(0, 2**31),
)
def test_products_are_within_the_bound_in_any_layout(
    m: int, k: int, n: int, batch: int, left: Any, right: Any, seed: int
) -> None:
    loaded("lenet")
    front = (batch,) if batch else ()
    a, b = values(*front, m, k, seed=seed), values(*front, k, n, seed=seed + 1)
    x, w = left(a), right(b)
    with watched() as calls:
        found = x @ w
    check(found, a, b)
    assert found.is_contiguous()
    (call,) = of(calls, "bmm" if batch else "mm")
    assert call.where == "PL" and {run.cu for run in call.kernels} == {"matmul_f32_0"}
    assert torch.equal(x.cpu(), a) and torch.equal(w.cpu(), b)


@settings(max_examples=40)
@given(m=st.integers(1, 12), k=st.integers(1, 12), n=st.integers(1, 20), seed=st.integers(0, 2**31))
def test_infinities_and_nan_are_those_of_the_cpu(m: int, k: int, n: int, seed: int) -> None:
    loaded("lenet")
    a, b = values(m, k, seed=seed, special=True), values(k, n, seed=seed + 1, special=True)
    # Sums of huge values overflow or not by their order, which no one defines.
    a, b = (torch.where(t.abs() == 1e38, 1e15, t) for t in (a, b))
    found, exact = torch.mm(a.to("pynq"), b.to("pynq")).cpu(), a.double() @ b.double()
    assert torch.equal(found.isnan(), exact.isnan())
    assert torch.equal(found.isposinf(), exact.isposinf())
    assert torch.equal(found.isneginf(), exact.isneginf())
    finite = exact.isfinite()
    size = (a.double().abs() @ b.double().abs())[finite]
    assert bool(((found[finite] - exact[finite]).abs() <= (k + 2) * EPS * size + 1e-37).all())


CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mm": (torch.mm, ((5, 7), (7, 3))),
    "addmm, row": (torch.addmm, ((3,), (5, 7), (7, 3))),
    "addmm, column": (torch.addmm, ((5, 1), (5, 7), (7, 3))),
    "addmm, one": (torch.addmm, ((), (5, 7), (7, 3))),
    "addmm, full": (
        lambda c, a, b: torch.addmm(c, a, b, alpha=-0.3, beta=2),
        ((9, 3), (9, 7), (7, 3)),
    ),
    "addmm_": (lambda c, a, b: c.clone().addmm_(a, b, beta=0.5), ((5, 3), (5, 7), (7, 3))),
    "bmm": (torch.bmm, ((4, 5, 7), (4, 7, 3))),
    "baddbmm": (
        lambda c, a, b: torch.baddbmm(c, a, b, alpha=2, beta=-1),
        ((4, 1, 9), (4, 5, 7), (4, 7, 9)),
    ),
    "baddbmm_": (lambda c, a, b: c.clone().baddbmm_(a, b), ((4, 5, 9), (4, 5, 7), (4, 7, 9))),
    "mv": (torch.mv, ((5, 7), (7,))),
    "addmv": (lambda c, a, v: torch.addmv(c, a, v, alpha=3), ((5,), (5, 7), (7,))),
    "addmv, one": (torch.addmv, ((), (5, 7), (7,))),
    "addmv_": (lambda c, a, v: c.clone().addmv_(a, v), ((5,), (5, 7), (7,))),
    "dot": (torch.dot, ((70,), (70,))),
    "linear": (functional.linear, ((5, 7), (3, 7), (3,))),
    "linear, 3d": (functional.linear, ((2, 5, 7), (3, 7), (3,))),
    "matmul, broadcast": (torch.matmul, ((2, 1, 5, 7), (4, 7, 3))),
    "_addmm_activation": (torch._addmm_activation, ((3,), (5, 7), (7, 3))),
}


@pytest.mark.parametrize("name", CASES)
def test_every_operator_runs_on_the_pl(lenet: Any, name: str) -> None:
    function, shapes = CASES[name]
    tensors = [values(*shape, seed=i) for i, shape in enumerate(shapes)]
    expected = function(*tensors)
    with watched() as calls:
        found = function(*(t.to("pynq") for t in tensors))
    assert found.device.type == "pynq"
    assert torch.allclose(found.cpu(), expected, rtol=1e-5, atol=1e-5)
    assert found.shape == expected.shape
    done = of(calls, *PRODUCTS, "_addmm_activation")
    assert [c.where for c in done] == ["PL"], calls


def test_beta_0_ignores_what_is_added_and_factors_are_float32(lenet: Any) -> None:
    a, b = values(5, 7), values(7, 3, seed=1)
    nan = torch.full((3,), float("nan"), device="pynq")
    check(torch.addmm(nan, a.to("pynq"), b.to("pynq"), beta=0), a, b)
    once = torch.addmm(nan.zero_(), a.to("pynq"), b.to("pynq"), alpha=1 / 3).cpu()
    assert torch.equal(once, torch.mm(a.to("pynq"), b.to("pynq")).cpu() * torch.tensor(1 / 3))


@pytest.mark.parametrize("name", ["addmm, full", "addmv", "baddbmm"])
def test_with_alpha_0_a_nan_in_the_operands_counts_as_on_the_cpu(lenet: Any, name: str) -> None:
    c, a, b = (values(*shape, seed=i) for i, shape in enumerate(CASES[name][1]))
    a.view(-1)[0] = float("nan")
    name = name.partition(",")[0]
    expected = getattr(torch, name)(c, a, b, alpha=0)
    found = getattr(torch, name)(c.to("pynq"), a.to("pynq"), b.to("pynq"), alpha=0)
    assert torch.equal(found.cpu().nan_to_num(7.0), expected.nan_to_num(7.0))


def test_out_receives_the_result(lenet: Any) -> None:
    a, b = values(5, 7), values(7, 3, seed=1)
    out = torch.empty(5, 3, device="pynq")
    kept = out.data_ptr()
    with watched() as calls:
        assert torch.mm(a.to("pynq"), b.to("pynq"), out=out) is out
    assert of(calls, "mm")[0].where == "PL" and out.data_ptr() == kept
    check(out, a, b)


def test_a_linear_layer_learns_on_the_pl(lenet: Any) -> None:
    """Forward and both gradients are products; transposes cost no copy."""
    torch.manual_seed(0)
    layer, x = torch.nn.Linear(20, 12), values(9, 20)
    expected = torch.autograd.grad(layer(x).square().sum(), list(layer.parameters()))
    on_pl, x_pl = torch.nn.Linear(20, 12), x.to("pynq").requires_grad_()
    on_pl.load_state_dict(layer.state_dict())
    on_pl.to("pynq")
    with watched() as calls:
        found = torch.autograd.grad(on_pl(x_pl).square().sum(), [*on_pl.parameters(), x_pl])
    products = of(calls, "mm", "addmm")
    assert len(products) == 3 and all(c.where == "PL" for c in products)
    for one, other in zip(found[:2], expected, strict=True):
        assert torch.allclose(one.cpu(), other, rtol=1e-4, atol=1e-5)


def test_what_the_kernel_cannot_do_runs_on_the_cpu(lenet: Any) -> None:
    a, b = values(5, 7), values(7, 3, seed=1)
    for one, other, said in (
        (a.double(), b.double(), "has a unit that multiplies matrices"),
        (a[:0], b, "nothing to multiply"),
    ):
        with watched() as calls:
            found = torch.mm(one.to("pynq"), other.to("pynq"))
        assert torch.allclose(found.cpu(), one @ other)
        assert of(calls, "mm")[0].where == "CPU" and said in of(calls, "mm")[0].reason
    with pytest.raises(RuntimeError):
        torch.mm(a.to("pynq"), a.to("pynq"))


def test_the_driver_takes_what_lies_in_cma_memory(lenet: Any) -> None:
    kernel = lenet.matmul_f32
    a, b, bias = values(9, 20), values(12, 20, seed=1), values(12, seed=2)
    check(kernel(a, b.t()), a, b.t())
    held = buffers.as_tensor(buffers.to_buffer(b))
    found = kernel(a, held.t(), bias=bias, relu=True, alpha=2, beta=-1)
    assert torch.allclose(found, (2 * (a @ b.t()) - bias).relu(), rtol=1e-4, atol=1e-5)
    assert kernel(values(0, 3), values(3, 4)).shape == (0, 4)
    assert torch.equal(kernel(values(2, 0), values(0, 4)), torch.zeros(2, 4))


@pytest.mark.parametrize(
    ("a", "b", "bias", "said"),
    [
        (torch.zeros(3, 4), torch.zeros(5, 6), None, r"\(M, K\) and \(K, N\)"),
        (torch.zeros(2, 3, 4), torch.zeros(4, 6), None, "expected"),
        (torch.zeros(3, 4).double(), torch.zeros(4, 6), None, "expected torch.float32"),
        (torch.zeros(3, 4), torch.zeros(4, 6), torch.zeros(5), "broadcasts"),
    ],
)
def test_the_driver_refuses_with_a_sentence(
    lenet: Any, a: Any, b: Any, bias: Any, said: str
) -> None:
    with pytest.raises(ArgumentError, match=said):
        lenet.matmul_f32(a, b, bias=bias)
