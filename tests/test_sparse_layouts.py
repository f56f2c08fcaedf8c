"""Sparse tensors of all layouts on device "pynq": the same values and structure as on the CPU."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

import pytest
import torch
from device_helpers import closing, loaded, of, watched
from opdb.compare import difference

pytestmark = [
    pytest.mark.timeout(120),
    pytest.mark.usefixtures("closing"),
    pytest.mark.filterwarnings("ignore:Sparse.*(beta|invariant):UserWarning"),
]
__all__ = ["closing"]

INDICES = torch.tensor([[0, 2, 2, 1, 2], [1, 0, 3, 3, 0]])
VALUES = torch.tensor([1.5, -2.0, 3.0, 0.25, 4.0])  # one place twice
SHAPE = (4, 6)
DENSE = torch.arange(12.0).reshape(6, 2)

Make = Callable[[str], torch.Tensor]
LAYOUTS: dict[str, Make] = {
    "coo": lambda d: torch.sparse_coo_tensor(INDICES, VALUES, SHAPE, device=d),
    "coalesced": lambda d: LAYOUTS["coo"](d).coalesce(),
    "hybrid": lambda d: torch.sparse_coo_tensor(INDICES[:1], DENSE[:5], (4, 2), device=d),
    "csr": lambda d: LAYOUTS["coo"](d).to_sparse_csr(),
    "csc": lambda d: LAYOUTS["coo"](d).to_sparse_csc(),
    "bsr": lambda d: LAYOUTS["coo"](d).to_dense().to_sparse_bsr((2, 3)),
    "bsc": lambda d: LAYOUTS["coo"](d).to_dense().to_sparse_bsc((2, 3)),
}
Do = Callable[[torch.Tensor, torch.Tensor], Any]
#: What is done with a tensor `x` and a dense one `b`; where the CPU raises, the device has to.
OPERATORS: dict[str, Do] = {
    "back": lambda x, b: x.cpu(),
    "to_dense": lambda x, b: x.to_dense(),
    "to_sparse": lambda x, b: x.to_sparse(),
    "to_sparse_csr": lambda x, b: x.to_sparse_csr(),
    "to_sparse_csc": lambda x, b: x.to_sparse_csc(),
    "coalesce": lambda x, b: x.coalesce(),
    "coalesced parts": lambda x, b: (x.coalesce().indices(), x.coalesce().values()),
    "dims": lambda x, b: (x.sparse_dim(), x.dense_dim(), x._nnz(), x.shape),
    "matmul": lambda x, b: x @ b,
    "mv": lambda x, b: x @ b[:, 0],
    "sparse.mm": lambda x, b: torch.sparse.mm(x, b),
    "sparse.addmm": lambda x, b: torch.sparse.addmm(b[:4], x, b, beta=0.5, alpha=2),
    "addmm": lambda x, b: torch.addmm(b[:4], x, b),
    "mm out": lambda x, b: torch.mm(x, b, out=b.new_empty(4, 2)),
    "mm turned": lambda x, b: x.t() @ b[:4],
    "sparse @ sparse": lambda x, b: torch.sparse.mm(x, x.t()),
    "dense @ sparse": lambda x, b: b[:4].t() @ x,
    "add": lambda x, b: x + x,
    "add dense": lambda x, b: torch.zeros(x.shape, device=x.device) + x,
    "sub": lambda x, b: x - 2 * x,
    "mul": lambda x, b: x * x,
    "neg": lambda x, b: -x.abs(),
    "sqrt out": lambda x, b: torch.sqrt(x.abs(), out=x.clone()),
    "mul_": lambda x, b: (x.mul_(3), x),
    "add_": lambda x, b: (x.add_(x.clone().mul_(2)), x),
    "zero_": lambda x, b: (x.zero_(), x),
    "copy_": lambda x, b: (torch.zeros_like(x).copy_(x), x.clone()),
    "resized": lambda x, b: x.sparse_resize_((7, 9), 2, 0),
    "sum": lambda x, b: (torch.sparse.sum(x), x.sum()),
    "sum of rows": lambda x, b: torch.sparse.sum(x, 1),
    "softmax": lambda x, b: torch.sparse.softmax(x, 1),
    "mask": lambda x, b: torch.ones(x.shape, device=x.device).sparse_mask(x.coalesce()),
    "select": lambda x, b: x[2],
    "narrow": lambda x, b: x.narrow_copy(0, 1, 2),
    "cat": lambda x, b: torch.cat([x, x]),
    "double": lambda x, b: x.double(),
    "exp": lambda x, b: torch.exp(x),
    "like": lambda x, b: (torch.zeros_like(x), torch.empty_like(x).shape),
}


def outcome(do: Do, make: Make, device: str) -> Any:
    x = make(device)
    try:
        return [do(x, DENSE.to(device)), x]
    except (RuntimeError, NotImplementedError, ValueError, IndexError) as error:
        return type(error).__name__


@pytest.mark.parametrize("layout", LAYOUTS)
def test_operators_are_those_of_the_cpu(layout: str) -> None:
    make, wrong = LAYOUTS[layout], []
    for name, do in OPERATORS.items():
        cpu, found = outcome(do, make, "cpu"), outcome(do, make, "pynq")
        if isinstance(cpu, list) and isinstance(found, list) and name == "back":
            cpu, found = cpu[1:], [found[0].to("pynq")]
        said = difference(cpu, found, name)
        if said:
            wrong.append(said)
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("layout", LAYOUTS)
def test_there_and_back_and_printed(layout: str) -> None:
    cpu, x = LAYOUTS[layout]("cpu"), LAYOUTS[layout]("cpu").to("pynq")
    assert difference(cpu, x) is None and x.device == torch.device("pynq:0")
    if cpu.layout is torch.sparse_coo:
        assert x.is_coalesced() == cpu.is_coalesced()
    assert difference(x, x.cpu().to("pynq"), place=False) is None
    assert "".join(repr(x).split()).replace("device='pynq:0',", "") == "".join(repr(cpu).split())


def test_tensors_without_entries() -> None:
    for make in (
        lambda d: torch.sparse_coo_tensor(size=(2, 3), device=d),
        lambda d: torch.zeros(2, 3, layout=torch.sparse_coo, device=d),
        lambda d: torch.zeros(2, 3, layout=torch.sparse_csr, device=d),
    ):
        cpu, x = make("cpu"), make("pynq")
        assert difference(cpu, x) is None
        assert not (x @ torch.ones(3, 2, device="pynq")).any()


def test_a_saved_tensor_is_loaded_again() -> None:
    for layout in ("coo", "coalesced", "csr"):
        file = io.BytesIO()
        torch.save(LAYOUTS[layout]("pynq"), file)
        file.seek(0)
        assert difference(LAYOUTS[layout]("cpu"), torch.load(file)) is None


def test_gradients() -> None:
    def run(device: str) -> list[Any]:
        values = VALUES.clone().to(device).requires_grad_()
        b = DENSE.clone().to(device).requires_grad_()
        x = torch.sparse_coo_tensor(INDICES.to(device), values, SHAPE).coalesce()
        ((x @ b).square().sum() + x.to_dense().sin().sum()).backward()
        table = torch.nn.Embedding(5, 3, sparse=True)
        torch.nn.init.constant_(table.weight, 0.5)
        table = table.to(device)
        optimizer = torch.optim.SparseAdam(table.parameters())
        table(INDICES[0].to(device)).square().sum().backward()
        optimizer.step()
        return [values.grad, b.grad, table.weight.grad, table.weight.detach()]

    assert difference(run("cpu"), run("pynq")) is None


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (
            lambda: torch.sparse_coo_tensor([[0, 4], [0, 1]], [1.0, 2.0], SHAPE, device="pynq"),
            r"indices\[0, 1\] is 4; expected 0 to 3",
        ),
        (
            lambda: torch.sparse_csc_tensor([0, 1], [7], [1.0], (4, 1), device="pynq"),
            r"row_indices\[0\] is 7; expected 0 to 3",
        ),
        (
            lambda: torch.sparse_bsr_tensor(
                [[0, 1], [0, 1]], [[0], [3]], torch.ones(2, 1, 2, 2), (2, 2, 6), device="pynq"
            ),
            r"col_indices\[0\] is 3; expected 0 to 2",
        ),
    ],
)
def test_indices_that_point_outside_are_refused(make: Any, said: str) -> None:
    with torch.sparse.check_sparse_tensor_invariants(False):
        x = make()
    with pytest.raises(IndexError, match=said):
        x.to_dense()


def test_coo_products_run_on_the_pl() -> None:
    loaded("sparse")
    x, b = LAYOUTS["coalesced"]("pynq"), DENSE.to("pynq")
    with watched() as calls:
        products = [x @ b, x @ b[:, 1], torch.sparse.mm(x, b), torch.addmm(b[:4], x, b)]
        loose = LAYOUTS["coo"]("pynq") @ b
    found = of(calls, "mm", "mv", "addmm")
    assert [c.where for c in found] == ["PL"] * 4 + ["CPU"]
    assert all(c.kernels for c in found[:4]) and "coalesce() once" in found[4].reason
    cpu = LAYOUTS["coalesced"]("cpu")
    expected = [cpu @ DENSE, cpu @ DENSE[:, 1], cpu @ DENSE, torch.addmm(DENSE[:4], cpu, DENSE)]
    for p, e in zip([*products, loose], [*expected, expected[0]], strict=True):
        assert torch.equal(p.cpu(), e)  # sums of few small numbers are exact


def test_what_the_cpu_does_is_said() -> None:
    with watched() as calls:
        LAYOUTS["coo"]("pynq").coalesce()
    (call,) = of(calls, "_coalesce")
    assert call.where == "CPU" and call.reason == "no kernel serves this operator"
