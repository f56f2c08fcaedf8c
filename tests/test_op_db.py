"""PyTorch's own operator table, run on device "pynq" against the CPU; docs/conformance.md."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from opdb import table
from opdb.compare import Values, difference
from opdb.exclusions import EXCLUSIONS, MODULE, Allowed
from opdb.pool import COLUMNS, Pool

ROWS = table.committed()


@pytest.fixture(scope="module")
def pool(request: pytest.FixtureRequest) -> Iterator[Pool]:
    """Run the operators of all tests selected here, in order, in processes of their own."""
    chosen = [
        item.callspec.params["operator"]
        for item in request.session.items
        if item.path == request.path and "operator" in getattr(item, "fixturenames", ())
    ]
    running = Pool(chosen)
    yield running
    running.close()


@pytest.mark.parametrize("operator", list(ROWS))
def test_operator(operator: str, pool: Pool) -> None:
    cases = pool.cases(operator)
    failures = [f"{case.column}: {said}" for case in cases for said in case.failures]
    assert not failures, "\n".join(failures)
    assert table.row(cases) == ROWS[operator], (
        f"{table.PAGE.name} says otherwise: run python tests/opdb/table.py --write"
    )


#: What kernels of the overlays serve.
OFFERED = (
    *("mm", "addmm", "addmm.decomposed", "bmm", "baddbmm", "addbmm", "matmul", "__rmatmul__"),
    *("mv", "addmv", "dot", "vdot", "inner", "nn.functional.linear", "nn.functional.bilinear"),
    *("nn.functional.conv1d", "nn.functional.conv2d", "nn.functional.conv3d"),
)


def test_with_an_overlay_operators_are_the_same() -> None:
    pool = Pool(OFFERED, overlay="gemm")
    try:
        for operator in OFFERED:
            cases = pool.cases(operator)
            assert not [case.failures for case in cases if case.failed], operator
            assert table.row(cases) == ROWS[operator]
    finally:
        pool.close()


def test_the_page_lists_every_operator_of_this_pytorch(pool: Pool) -> None:
    assert list(ROWS) == pool.operators


def test_the_page_is_what_its_rows_say() -> None:
    # Summary, exclusions and prose; the rows themselves are compared operator by operator.
    assert table.PAGE.read_text() == table.page(ROWS)


def test_every_exclusion_has_cases() -> None:
    for entry in EXCLUSIONS:
        for operator in () if entry.columns == (MODULE,) else entry.operators:
            cells = dict(zip(COLUMNS, ROWS[operator], strict=True))
            own = set(entry.columns or COLUMNS) - {MODULE}
            assert {cells[c] for c in own} - {table.NOTHING}, f"{operator}: no such case"
            if entry.allowed is Allowed.FAILURE:
                assert table.EXCLUDED in cells.values(), operator


def test_a_process_that_ends_costs_its_own_case() -> None:
    pool = Pool(["nn.functional.max_pool2d", "neg"], workers=1, columns=("float32", "bool"))
    try:
        # It has answered that it is ready, and is at the first operator, of 1440 samples.
        os.kill(pool.processes()[0], signal.SIGKILL)
        dead, after = pool.cases("nn.functional.max_pool2d")
        assert dead.failures and "ended with status -9" in dead.failures[0]
        assert not after.failures
        assert all(not case.failures for case in pool.cases("neg"))
    finally:
        pool.close()


X = torch.tensor([[1.0, -0.0], [float("nan"), float("inf")]])


@pytest.mark.parametrize(
    ("found", "said"),
    [
        (X, "device cpu"),
        (X.double().to("pynq"), "dtype"),
        (X.flatten().to("pynq"), "shape"),
        (X.to("pynq").t().contiguous().t(), "strides"),
        (torch.cat([X, X]).to("pynq")[2:], "storage_offset"),
        (X.to("pynq").requires_grad_(), "requires_grad"),
        (torch.tensor([[1.0, 0.0], [float("nan"), float("inf")]]).to("pynq"), "values"),
        (X.nextafter(X + 1).to("pynq"), "values differ, most at flat index"),
        (1.0, "float, expected a tensor"),
    ],
)
def test_differences_are_seen(found: Any, said: str) -> None:
    assert difference(X, X.to("pynq")) is None
    assert said in str(difference(X, found))
    assert said in str(difference({"a": [X, X]}, {"a": [X.to("pynq"), found]}))


def test_values_can_be_close_or_ignored() -> None:
    near, far = (X.nextafter(X + 1).to("pynq"), torch.zeros(2, 2, device="pynq"))
    assert difference(X, near, values=Values.CLOSE) is None
    assert difference(X, far, values=Values.CLOSE)
    assert difference(X, far, values=Values.IGNORED) is None
    assert difference(X, far.bool(), values=Values.IGNORED)
