"""int8 products on device "pynq": exact whatever the operands look like, and done by the PL."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from device_helpers import closing, int8, loaded, of, watched, wrapped
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.nn import functional

import pynq_torch
from pynq_torch.torch_device.exact import int_mm

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

OVERLAYS = ("gemm", "gemm_dual", "matrix_mult", "matrix_mult_dual")
PRODUCTS = (
    *("_int_mm", "mm", "addmm", "addmm_", "bmm", "baddbmm", "baddbmm_"),
    *("mv", "addmv", "addmv_", "dot"),
)


@pytest.fixture
def gemm() -> Any:
    return loaded("gemm_dual")


# ---- how a matrix may lie in memory --------------------------------------------------------------


def row_major(values: torch.Tensor) -> torch.Tensor:
    return values.to("pynq")


def column_major(values: torch.Tensor) -> torch.Tensor:
    return values.t().contiguous().to("pynq").t()


def offset(values: torch.Tensor) -> torch.Tensor:
    rows, columns = values.shape
    base = torch.full((rows + 2, columns + 5), 77, dtype=values.dtype, device="pynq")
    base[1 : 1 + rows, 3 : 3 + columns] = values.to("pynq")
    return base[1 : 1 + rows, 3 : 3 + columns]


def every_other(values: torch.Tensor) -> torch.Tensor:
    rows, columns = values.shape
    base = torch.full((2 * rows, 3 * columns), 77, dtype=values.dtype, device="pynq")
    base[::2, ::3] = values.to("pynq")
    return base[::2, ::3]


def rows_backwards(values: torch.Tensor) -> torch.Tensor:
    return values.flip(0).to("pynq").flip(0)


LAYOUTS = (row_major, column_major, offset, every_other, rows_backwards)
sizes = st.integers(0, 40) | st.just(1)


@settings(max_examples=60)
@given(
    m=sizes,
    k=sizes,
    n=sizes,
    left=st.sampled_from(LAYOUTS),
    right=st.sampled_from(LAYOUTS),
    seed=st.integers(0, 2**31),
)
def test_products_are_exact_in_any_layout(
    m: int, k: int, n: int, left: Any, right: Any, seed: int
) -> None:
    loaded("gemm_dual")
    a, b = int8(m, k, seed=seed), int8(k, n, seed=seed + 1)
    exact = a.long() @ b.long()
    x, w = left(a), right(b)
    with watched() as calls:
        sums, low = torch._int_mm(x, w), torch.mm(x, w)
    assert sums.dtype is torch.int32
    assert torch.equal(sums.cpu(), exact.to(torch.int32))
    assert torch.equal(low.cpu(), wrapped(exact))
    assert sums.is_contiguous() and low.is_contiguous()
    places = {(c.where, c.reason) for c in of(calls, "_int_mm", "mm")}
    if m * k * n:
        assert places == {("PL", "")}
        assert all(c.kernels for c in of(calls, "_int_mm", "mm"))
    else:
        assert places == {("CPU", "there is nothing to multiply")}
    assert torch.equal(x.cpu(), a) and torch.equal(w.cpu(), b)


@pytest.mark.parametrize("name", OVERLAYS)
def test_every_overlay_multiplies(name: str) -> None:
    overlay = loaded(name)
    for m, k, n in ((1, 1, 1), (3, 700, 5), (300, 20, 260), (1, 300, 600), (257, 256, 255)):
        a, b = int8(m, k, seed=m), int8(k, n, seed=n)
        with watched() as calls:
            found = torch._int_mm(a.to("pynq"), column_major(b))
        assert torch.equal(found.cpu(), (a.int() @ b.int()))
        assert [c.where for c in of(calls, "_int_mm")] == ["PL"]
        used = {run.cu for c in calls for run in c.kernels}
        assert used and used <= set(overlay.kernels)


# ---- every operator ------------------------------------------------------------------------------

CASES: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "mm": (torch.mm, ((5, 7), (7, 3))),
    "addmm, row": (torch.addmm, ((3,), (5, 7), (7, 3))),
    "addmm, column": (torch.addmm, ((5, 1), (5, 7), (7, 3))),
    "addmm, one": (torch.addmm, ((), (5, 7), (7, 3))),
    "addmm, full": (
        lambda c, a, b: torch.addmm(c, a, b, alpha=-3, beta=2),
        ((5, 3), (5, 7), (7, 3)),
    ),
    "addmm, beta 0": (lambda c, a, b: torch.addmm(c, a, b, beta=0), ((3,), (5, 7), (7, 3))),
    "addmm, alpha 0": (lambda c, a, b: torch.addmm(c, a, b, alpha=0), ((3,), (5, 7), (7, 3))),
    "addmm_": (lambda c, a, b: c.addmm_(a, b, alpha=5), ((5, 3), (5, 7), (7, 3))),
    "bmm": (torch.bmm, ((4, 5, 7), (4, 7, 3))),
    "baddbmm": (
        lambda c, a, b: torch.baddbmm(c, a, b, alpha=7, beta=-1),
        ((5, 3), (4, 5, 7), (4, 7, 3)),
    ),
    "baddbmm_": (lambda c, a, b: c.baddbmm_(a, b), ((4, 5, 3), (4, 5, 7), (4, 7, 3))),
    "mv": (torch.mv, ((5, 7), (7,))),
    "mv, one row": (torch.mv, ((1, 7), (7,))),
    "addmv, one row": (torch.addmv, ((1,), (1, 7), (7,))),
    "addmv": (lambda c, a, b: torch.addmv(c, a, b, alpha=2, beta=3), ((5,), (5, 7), (7,))),
    "addmv, one": (torch.addmv, ((), (5, 7), (7,))),
    "addmv_": (lambda c, a, b: c.addmv_(a, b), ((5,), (5, 7), (7,))),
    "dot": (torch.dot, ((7,), (7,))),
    "inner": (torch.inner, ((5, 7), (3, 7))),
    "linear": (functional.linear, ((5, 7), (3, 7))),
    "linear, bias": (functional.linear, ((5, 7), (3, 7), (3,))),
    "linear, vector": (functional.linear, ((7,), (3, 7), (3,))),
    "linear, batch": (functional.linear, ((2, 5, 7), (3, 7), (3,))),
    "matmul, vectors": (torch.matmul, ((7,), (7,))),
    "matmul, 1d by 2d": (torch.matmul, ((7,), (7, 4))),
    "matmul, 2d by 1d": (torch.matmul, ((4, 7), (7,))),
    "matmul, 3d by 1d": (torch.matmul, ((2, 5, 7), (7,))),
    "matmul, 1d by 3d": (torch.matmul, ((7,), (3, 7, 2))),
    "matmul, broadcast": (torch.matmul, ((2, 1, 5, 7), (3, 7, 4))),
    "@": (lambda a, b: a @ b, ((2, 5, 7), (7, 4))),
    "einsum": (lambda a, b: torch.einsum("bij,bkj->bik", a, b), ((4, 5, 7), (4, 3, 7))),
    "tensordot": (lambda a, b: torch.tensordot(a, b, 1), ((4, 5, 7), (7, 3))),
    "expanded": (lambda a, b: a.expand(5, 7) @ b, ((1, 7), (7, 3))),
    "expanded columns": (lambda a, b: a.expand(5, 7) @ b, ((5, 1), (7, 3))),
}


@pytest.mark.parametrize("case", CASES)
def test_operators_give_what_the_cpu_gives(gemm: Any, case: str) -> None:
    function, shapes = CASES[case]
    on_cpu = [int8(*shape, seed=i) for i, shape in enumerate(shapes)]
    on_pynq = [t.to("pynq") for t in on_cpu]
    with watched() as calls:
        found = function(*on_pynq)
    expected = function(*on_cpu)
    assert found.device.type == "pynq" and found.dtype is torch.int8
    assert torch.equal(found.cpu(), expected)
    assert found.stride() == expected.stride()
    products = of(calls, *PRODUCTS)
    assert products and {c.where for c in products} == {"PL"}
    for run in (run for call in products for run in call.kernels):
        given: Any = run.arguments
        assert given["lda"] >= given["k"] and given["ldb"] >= given["n"] <= given["ldc"]
    for mine, theirs in zip(on_pynq, on_cpu, strict=True):
        assert torch.equal(mine.cpu(), theirs)  # written in place on both, or on neither


@settings(max_examples=30)
@given(
    alpha=st.integers(-128, 127),
    beta=st.integers(-128, 127),
    shape=st.sampled_from([(), (1,), (6,), (4, 1), (1, 6), (4, 6)]),
    seed=st.integers(0, 2**31),
)
def test_factors_wrap_like_int8(alpha: int, beta: int, shape: tuple[int, ...], seed: int) -> None:
    loaded("gemm_dual")
    c, a, b = int8(*shape, seed=seed), int8(4, 9, seed=seed + 1), int8(9, 6, seed=seed + 2)
    with watched() as calls:
        found = torch.addmm(c.to("pynq"), a.to("pynq"), b.to("pynq"), alpha=alpha, beta=beta)
    exact = alpha * (a.long() @ b.long()) + beta * c.long()
    assert torch.equal(found.cpu(), wrapped(exact))
    assert torch.equal(found.cpu(), torch.addmm(c, a, b, alpha=alpha, beta=beta))
    assert [call.where for call in of(calls, "addmm")] == ["PL"]


@pytest.mark.parametrize("factor", [128, -129, 300, 2j])
def test_factors_that_are_no_int8_are_refused_as_by_the_cpu(gemm: Any, factor: Any) -> None:
    c, a, b = (int8(3), int8(5, 7), int8(7, 3))
    for function in (torch.addmm, torch.Tensor.addmm):
        with pytest.raises(RuntimeError, match="cannot be converted to type int8_t") as on_cpu:
            function(c, a, b, alpha=factor)
        with pytest.raises(RuntimeError) as on_pynq:
            function(c.to("pynq"), a.to("pynq"), b.to("pynq"), alpha=factor)
        assert str(on_pynq.value) == str(on_cpu.value)


# ---- out= ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("operator", "shapes"),
    [
        (torch.mm, ((5, 7), (7, 4))),
        (torch.bmm, ((2, 5, 7), (2, 7, 4))),
        (torch.mv, ((5, 7), (7,))),
        (torch.dot, ((7,), (7,))),
        (torch.addmm, ((4,), (5, 7), (7, 4))),
        (torch.baddbmm, ((2, 1, 4), (2, 5, 7), (2, 7, 4))),
        (torch.addmv, ((5,), (5, 7), (7,))),
        (torch._int_mm, ((5, 7), (7, 4))),
    ],
)
def test_out(gemm: Any, operator: Any, shapes: tuple[tuple[int, ...], ...]) -> None:
    on_cpu = [int8(*shape, seed=i) for i, shape in enumerate(shapes)]
    on_pynq = [t.to("pynq") for t in on_cpu]
    expected = (int_mm if operator is torch._int_mm else operator)(*on_cpu)
    around = torch.full(tuple(2 * n for n in expected.shape), 9, dtype=expected.dtype)
    around = around.to("pynq")
    out = around[tuple(slice(None, None, 2) for _ in expected.shape)]
    with watched() as calls:
        result = operator(*on_pynq, out=out)
    assert result is out and torch.equal(out.cpu(), expected)
    if expected.dim():
        assert bool((around[1::2] == 9).all())
    assert [c.where for c in of(calls, *PRODUCTS)] == ["PL"]


def test_out_may_be_an_operand_or_of_another_size(gemm: Any) -> None:
    a = int8(6, 6)
    x = a.to("pynq")
    torch.mm(x, x, out=x)
    assert torch.equal(x.cpu(), a @ a)
    small = torch.empty(0, dtype=torch.int8, device="pynq")
    torch.mm(x, x, out=small)
    assert torch.equal(small.cpu(), a @ a @ a @ a)
    with pytest.raises(RuntimeError, match="dtype"):
        torch.mm(x, x, out=torch.empty(6, 6, device="pynq"))
    with pytest.raises(RuntimeError, match="device"):
        torch.mm(x, x, out=torch.empty(6, 6, dtype=torch.int8))


# ---- what does not fit ---------------------------------------------------------------------------


def test_sums_longer_than_int32_wrap(gemm: Any) -> None:
    k = 2**17 + 3
    a = torch.full((2, k), -128, dtype=torch.int8)
    with watched() as calls:
        found = torch._int_mm(a.to("pynq"), a.t().contiguous().to("pynq"))
    assert found.tolist() == [[-(2**31) + 3 * 2**14] * 2] * 2
    assert [c.where for c in of(calls, "_int_mm")] == ["PL"]


@pytest.mark.parametrize(
    ("a", "b", "reason"),
    [
        (int8(3, 4).short(), int8(4, 2).short(), "no unit multiplies int16"),
        (int8(3, 4).double(), int8(4, 2).double(), "no unit multiplies float64"),
        (int8(3, 4).to(torch.uint8), int8(4, 2).to(torch.uint8), "no unit multiplies uint8"),
        (int8(3, 4).float(), int8(4, 2).float(), "floating values run exactly, on the CPU"),
        (int8(3, 4).half(), int8(4, 2).half(), "allow_int8 = True"),
        (int8(3, 4).cfloat(), int8(4, 2).cfloat(), "no unit multiplies complex64"),
    ],
)
def test_the_cpu_does_other_dtypes_and_says_why(
    gemm: Any, a: torch.Tensor, b: torch.Tensor, reason: str
) -> None:
    with watched() as calls:
        found = a.to("pynq") @ b.to("pynq")
    assert torch.equal(found.cpu(), a @ b)
    (call,) = of(calls, "mm")
    assert call.where == "CPU" and reason in call.reason and not call.kernels


@pytest.mark.parametrize(
    ("function", "shapes"),
    [
        (torch.mm, ((3, 4), (3, 4))),
        (torch.mm, ((3,), (3, 4))),
        (torch.bmm, ((2, 3, 4), (3, 4, 2))),
        (torch.mv, ((3, 4), (3,))),
        (torch.dot, ((3,), (4,))),
        (torch.addmm, ((5,), (3, 4), (4, 2))),
        (torch.baddbmm, ((3, 3, 2), (2, 3, 4), (2, 4, 2))),
        (torch._int_mm, ((3, 4), (3, 4))),
        (lambda c, a, b: c.addmm_(a, b), ((1, 2), (3, 4), (4, 2))),
        (functional.linear, ((3, 4), (2, 5))),
    ],
)
def test_wrong_sizes_are_refused_in_the_cpus_words(gemm: Any, function: Any, shapes: Any) -> None:
    on_cpu = [int8(*shape, seed=i) for i, shape in enumerate(shapes)]
    with pytest.raises((RuntimeError, ValueError)) as theirs:
        function(*on_cpu)
    with pytest.raises(type(theirs.value)) as ours:
        function(*(t.to("pynq") for t in on_cpu))
    assert str(ours.value) == str(theirs.value)


def test_without_a_unit_the_cpu_multiplies() -> None:
    pynq_torch.use_board("csim")
    a, b = int8(3, 4), int8(4, 2)
    x, w = a.to("pynq"), b.to("pynq")
    for load in (lambda: None, lambda: pynq_torch.load("vadd")):
        load()
        with watched() as calls:
            found = torch._int_mm(x, w)
        assert torch.equal(found.cpu(), a.int() @ b.int())
        (call,) = of(calls, "_int_mm")
        assert call.where == "CPU" and "pynq_torch.load('gemm')" in call.reason
    pynq_torch.load("gemm")
    with watched() as calls:
        assert torch.equal(torch._int_mm(x, w).cpu(), a.int() @ b.int())
    assert [c.where for c in of(calls, "_int_mm")] == ["PL"]
