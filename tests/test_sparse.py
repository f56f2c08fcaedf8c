"""Sparse matrices in compressed rows: products on the PL within a bound, bad indices refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from device_helpers import closing, loaded, of, watched
from hypothesis import given, settings
from hypothesis import strategies as st

import pynq_torch
from pynq_torch.errors import ArgumentError
from pynq_torch.kernels.tables import sparse

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("closing"),
    pytest.mark.filterwarnings("ignore:Sparse.*(beta|invariant):UserWarning"),
]
__all__ = ["closing"]


@pytest.fixture(autouse=True)
def overlay() -> Any:
    return loaded("sparse")


def matrix(
    rows: int,
    columns: int,
    density: float,
    seed: int,
    kind: torch.dtype = torch.int64,
    special: bool = False,
) -> torch.Tensor:
    """Return a CSR matrix; some rows are empty, columns repeat and are in no order."""
    torch.manual_seed(seed)
    counts = torch.randint(0, max(1, int(2 * density * columns)) + 1, (rows,))
    counts[torch.rand(rows) < 0.2] = 0
    crow = torch.cat([torch.zeros(1, dtype=torch.int64), counts.cumsum(0)])
    entries = int(crow[-1])
    col = torch.randint(0, columns, (entries,))
    values = torch.randn(entries) * 10.0 ** torch.randint(-3, 4, (entries,))
    if special and entries:
        pool = torch.tensor([float("nan"), float("inf"), -float("inf"), 0.0, -0.0, 1e-42])
        values[torch.rand(entries) < 0.1] = pool[seed % len(pool)]
    return csr(crow.to(kind), col.to(kind), values, (rows, columns))


def csr(crow: Any, col: Any, values: Any, shape: tuple[int, int]) -> torch.Tensor:
    parts = (torch.as_tensor(crow), torch.as_tensor(col), torch.as_tensor(values))
    return torch.sparse_csr_tensor(*parts, shape, check_invariants=False)


def dense(a: torch.Tensor) -> torch.Tensor:
    """Return the matrix in float64, repeated places added; torch's to_dense keeps the last."""
    crow, col = a.crow_indices().long(), a.col_indices().long()
    rows = torch.repeat_interleave(torch.arange(a.shape[0]), crow.diff())
    made = torch.zeros(a.shape, dtype=torch.float64)
    return made.index_put_((rows, col), a.values().double(), accumulate=True)


def within(found: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether each element of ``a @ b`` is as near as the table of the family says."""
    crow = a.crow_indices()
    most = int(crow.diff().max()) if len(crow) > 1 else 0
    size = csr(crow, a.col_indices(), a.values().abs(), tuple(a.shape))
    bound = sparse.error_factor(most) * (dense(size) @ b.abs().double()) + 2.0**-149 * (most + 1)
    error = (found.cpu().double() - dense(a) @ b.double()).abs()
    return bool((error <= bound).all())


def on_pl(calls: list[Any], *names: str) -> bool:
    found = of(calls, *names)
    return bool(found) and all(c.where == "PL" and c.kernels and not c.reason for c in found)


shapes = st.integers(1, 60)


@settings(max_examples=40)
@given(
    rows=shapes,
    columns=shapes,
    n=st.integers(1, 12) | st.just(300),
    density=st.sampled_from([0.02, 0.1, 0.5]),
    kind=st.sampled_from([torch.int64, torch.int32]),
    seed=st.integers(0, 999),
    turned=st.booleans(),
    step=st.integers(1, 3),
)
def test_products_are_within_the_bound(
    rows: int, columns: int, n: int, density: float, kind: Any, seed: int, turned: bool, step: int
) -> None:
    overlay = loaded("sparse")
    a = matrix(rows, columns, density, seed, kind)
    b = torch.randn(n, columns * step).t()[::step] if turned else torch.randn(columns, n)
    p, q = a.to("pynq"), b.t().to("pynq").t() if turned else b.to("pynq")
    with watched() as calls:
        product, vector = p @ q, torch.mv(p, q[:, -1])
    if a._nnz():
        assert on_pl(calls, "mm", "mv")
    assert product.is_contiguous() and vector.is_contiguous()
    assert within(product, a, b) and within(vector[:, None], a, b[:, -1:])
    assert within(overlay.spmm_f32(a, b), a, b)
    assert within(overlay.spmv_f32(a, b[:, 0])[:, None], a, b[:, :1])


def test_values_that_are_no_numbers(overlay: Any) -> None:
    for seed in range(6):
        a, b = matrix(40, 30, 0.2, seed, special=True), torch.randn(30, 5)
        b[seed, 2], b[seed + 1, 3] = float("inf"), float("nan")
        # Unlike a product with zeros, a place that is not stored does not meet the infinity.
        expected = torch.zeros(40, 5)
        crow, col, values = a.crow_indices(), a.col_indices(), a.values()
        for row in range(40):
            for k in range(int(crow[row]), int(crow[row + 1])):
                expected[row] += values[k] * b[col[k]]
        found = a.to("pynq") @ b.to("pynq")
        assert torch.equal(found.cpu().isnan(), expected.isnan())
        assert torch.equal(found.cpu().isinf(), expected.isinf())
        assert torch.equal(
            (a.to("pynq") @ b[:, 3].to("pynq")).cpu().isnan(), expected[:, 3].isnan()
        )


def test_a_vector_longer_than_the_chip_has_room(overlay: Any) -> None:
    columns = sparse.VECTOR + 77
    a, x = matrix(30, columns, 0.002, 1), torch.randn(columns)
    assert within((a.to("pynq") @ x.to("pynq"))[:, None], a, x[:, None])
    b = torch.randn(columns, 2 * sparse.TILE + 1)[:, ::2]
    assert within(a.to("pynq") @ b.to("pynq"), a, b)


def test_sums_of_products_with_what_there_is() -> None:
    torch.manual_seed(0)
    a, b, c = matrix(20, 15, 0.2, 3), torch.randn(15, 4), torch.randn(20, 4)
    p, q, r = a.to("pynq"), b.to("pynq"), c.to("pynq")
    with watched() as calls:
        cases = [
            (
                torch.addmm(r, p, q, beta=0.5, alpha=-2),
                0.5 * c.double() - 2 * (dense(a) @ b.double()),
            ),
            (torch.addmm(r[0], p, q), c[0] + dense(a) @ b.double()),
            (torch.sparse.mm(p, q), dense(a) @ b.double()),
            (torch.sparse.addmm(r, p, q), c + dense(a) @ b.double()),
            (
                torch.addmv(r[:, 1], p, q[:, 2], alpha=3),
                c[:, 1] + 3 * (dense(a) @ b[:, 2].double()),
            ),
        ]
    assert on_pl(calls, "addmm", "addmv")
    for found, expected in cases:
        scale = float(expected.abs().max())
        assert torch.allclose(found.cpu().double(), expected, rtol=1e-5, atol=1e-6 * scale)
    nothing = torch.full((20, 4), float("nan"), device="pynq")
    assert not torch.addmm(nothing, p, q, beta=0).isnan().any()


def test_gradients() -> None:
    # Without repeated places, of which torch's own gradient knows nothing.
    torch.manual_seed(5)
    d = torch.randn(12, 9) * (torch.rand(12, 9) < 0.3)
    a, b = d.to_sparse_csr(), torch.randn(9, 4)
    w, y = a.values().to("pynq").requires_grad_(), b.to("pynq").requires_grad_()
    p = torch.sparse_csr_tensor(a.crow_indices().to("pynq"), a.col_indices().to("pynq"), w, d.shape)
    with watched() as calls:
        (p @ y).square().sum().backward()
    product = 2 * (d @ b)
    assert torch.allclose(y.grad.cpu(), d.t() @ product, rtol=1e-4, atol=1e-4)
    assert torch.allclose(w.grad.cpu(), (product @ b.t())[d != 0], rtol=1e-4, atol=1e-4)
    first = of(calls, "mm")[0]
    assert first.where == "PL" and first.kernels


BAD = {
    "a column too far": ([0, 2, 3], [0, 3, 1], r"col_indices\[1\] is 3; expected 0 to 2"),
    "a negative column": ([0, 2, 3], [0, 1, -1], r"col_indices\[2\] is -1"),
    "rows that fall": ([0, 4, 3], [0, 1, 2], "fall after row 1: 4, then 3"),
    "a first row that is not 0": ([1, 2, 3], [0, 1, 2], "go from 1 to 3"),
    "more rows than entries": ([0, 2, 9], [0, 1, 2], "go from 0 to 9; expected 0 to 3"),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("kind", [torch.int64, torch.int32])
def test_indices_that_point_outside_are_refused(overlay: Any, case: str, kind: Any) -> None:
    crow, col, said = BAD[case]
    a = csr(torch.tensor(crow, dtype=kind), torch.tensor(col, dtype=kind), torch.ones(3), (2, 3))
    x, b = torch.ones(3), torch.ones(3, 2)
    for call in (lambda: overlay.spmv_f32(a, x), lambda: overlay.spmm_f32(a, b)):
        with pytest.raises(ArgumentError, match=said):
            call()
    parts = (a.crow_indices().to("pynq"), a.col_indices().to("pynq"), a.values().to("pynq"))
    p = csr(*parts, (2, 3))
    with watched() as calls:
        for operator in (lambda: p @ x.to("pynq"), lambda: p @ b.to("pynq"), p.to_dense):
            with pytest.raises(IndexError, match=said):
                operator()
    assert not any(c.kernels for c in calls)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda o, a, x: o.spmv_f32(a.to_dense(), x), "expected torch.sparse_csr"),
        (lambda o, a, x: o.spmv_f32(a, x[:, None]), r"expected a matrix \[M, K\] and a vector"),
        (lambda o, a, x: o.spmm_f32(a, x), r"and a matrix \[K, N\]"),
        (lambda o, a, x: o.spmv_f32(a, x[1:]), r"other \(8,\)"),
        (lambda o, a, x: o.spmv_f32(a, x.double()), "expected torch.float32"),
        (lambda o, a, x: o.spmv_f32(a.double(), x), "values has dtype torch.float64"),
    ],
)
def test_the_drivers_refuse_with_a_sentence(overlay: Any, call: Any, said: str) -> None:
    with pytest.raises(ArgumentError, match=said):
        call(overlay, matrix(5, 9, 0.3, 0), torch.randn(9))


def test_matrices_without_entries(overlay: Any) -> None:
    for shape in ((0, 4), (3, 4), (3, 0)):
        a = csr(torch.zeros(shape[0] + 1, dtype=torch.int64), [], torch.empty(0), shape)
        with watched() as calls:
            assert not (a.to("pynq") @ torch.ones(shape[1], 2, device="pynq")).any()
            assert not overlay.spmv_f32(a, torch.ones(shape[1])).any()
        assert not any(c.kernels for c in calls)


def test_what_else_there_is_of_them() -> None:
    a, b = matrix(7, 5, 0.3, 8), torch.randn(5, 3)
    a = dense(a).float().to_sparse_csr()
    p, q = a.to("pynq"), b.to("pynq")
    assert p.device.type == "pynq" and p.layout is torch.sparse_csr and p._nnz() == a._nnz()
    assert p.values().device.type == "pynq" and torch.equal(p.values().cpu(), a.values())
    assert torch.equal(p.crow_indices().cpu(), a.crow_indices())
    assert torch.equal(p.to_dense().cpu(), a.to_dense())
    assert torch.equal(p.cpu().to_dense(), a.to_dense())
    assert torch.equal(p.clone().to_dense().cpu(), a.to_dense())
    assert torch.equal((-p * 2).to_dense().cpu(), -2 * a.to_dense())
    assert "sparse_csr" in repr(p) and "pynq" in repr(p)
    with watched() as calls:
        turned = p.t() @ torch.ones(7, 2, device="pynq")
        right = q.t() @ p.t()
        wide = p.double() @ q.double()
    assert torch.allclose(turned.cpu(), a.to_dense().t() @ torch.ones(7, 2), atol=1e-2)
    assert torch.allclose(right.cpu(), b.t() @ a.to_dense().t(), rtol=1e-4, atol=1e-2)
    assert torch.allclose(wide.cpu(), a.to_dense().double() @ b.double())
    assert {c.where for c in of(calls, "mm")} == {"CPU"}
    assert all("matrix of layout CSR or COO" in c.reason for c in of(calls, "mm"))


def test_without_a_unit_the_cpu_multiplies() -> None:
    pynq_torch.load("vadd")
    a, b = matrix(6, 5, 0.3, 2), torch.randn(5, 3)
    with watched() as calls:
        assert within(a.to("pynq") @ b.to("pynq"), a, b)
    (call,) = of(calls, "mm")
    assert call.where == "CPU" and "pynq_torch.load('sparse')" in call.reason


def test_the_model_knows_that_a_long_vector_is_slow() -> None:
    from pynq_torch import timing

    one = timing.model_cycles("spmv_f32", rows=100, columns=sparse.VECTOR, entries=10**6)
    far = timing.model_cycles("spmv_f32", rows=100, columns=sparse.VECTOR + 1, entries=10**6)
    assert one is not None and far is not None and 4.5 * 10**6 < far < 5 * one
