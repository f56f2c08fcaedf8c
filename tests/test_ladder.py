"""The optimisation ladder: eight kernels, their drivers, operators and models."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from device_helpers import loaded, of, watched
from hypothesis import given, settings
from hypothesis import strategies as st

from pynq_torch import buffers, events
from pynq_torch.board import current_board
from pynq_torch.errors import ArgumentError
from pynq_torch.kernels import ladder
from pynq_torch.kernels.base import Kernel
from pynq_torch.kernels.operand import Operand
from pynq_torch.models import evidence, pynq_z2

RUNGS = (1, 2, 3, 4)
SPECIAL = torch.tensor(
    [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-45, -1e-40, 3.4e38, -3.4e38, 1.0]
)


@pytest.fixture(scope="module", params=RUNGS)
def rung(request: Any) -> Iterator[int]:
    loaded(f"ladder_{request.param}")
    yield request.param
    if request.param == RUNGS[-1]:
        board = current_board()
        if board is not None:
            board.close()


def units(base: str, rung: int) -> list[Kernel]:
    """Return all compute units of a kernel in the overlay of its rung."""
    overlay = loaded(f"ladder_{rung}")
    return [k for k in overlay.kernels.values() if k.kernel_name == f"{base}_{rung}"]


def vector(n: int, seed: int, special: bool = False) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    values = torch.randn(n, generator=generator)
    if special and n:
        at = torch.randint(0, n, (max(1, n // 7),), generator=generator)
        values[at] = SPECIAL[torch.randint(0, len(SPECIAL), at.shape, generator=generator)]
    return values


def same(found: torch.Tensor, expected: torch.Tensor) -> None:
    """NaN is NaN, whichever; all else bit by bit, signs of zeros too."""
    assert found.dtype is expected.dtype
    assert found.shape == expected.shape
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)
    real = ~expected.isnan()
    assert torch.equal(found.signbit()[real], expected.signbit()[real])


def bound(a: torch.Tensor, b: torch.Tensor) -> float:
    """Of the error of a float32 dot product: any order of n terms (Higham, 3.1)."""
    sizes = (a.double() * b.double()).abs().sum()
    return float(1.1 * a.numel() * 2**-24 * sizes)


# ---- drivers -------------------------------------------------------------------------------------


@settings(max_examples=15)
@given(
    n=st.one_of(st.integers(0, 70), st.sampled_from([1023, 1024, 1025, 3077, 40001])),
    seed=st.integers(0, 99),
)
def test_every_rung_adds(rung: int, n: int, seed: int) -> None:
    a, b = vector(n, seed, special=True), vector(n, seed + 1, special=True)
    first, *rest = units("vadd", rung)
    same(first(a, b, helpers=rest), a + b)


@settings(max_examples=15)
@given(
    n=st.one_of(st.integers(0, 70), st.sampled_from([1023, 1024, 1025, 3077, 40001])),
    seed=st.integers(0, 99),
)
def test_every_rung_multiplies_and_adds_up(rung: int, n: int, seed: int) -> None:
    a, b = vector(n, seed), vector(n, seed + 1)
    first, *rest = units("dot", rung)
    found = first(a, b, helpers=rest)
    exact = float(a.double() @ b.double())
    assert abs(float(found) - exact) <= bound(a, b)
    assert found.shape == ()
    # Whole numbers leave nothing to round.
    a, b = a.mul(4).round(), b.mul(4).round()
    assert float(first(a, b)) == float(a @ b)


def test_what_is_no_number_stays_none(rung: int) -> None:
    (dot, *_) = units("dot", rung)
    one = torch.ones(9)
    for special in (float("nan"), float("inf"), float("-inf")):
        a = one.clone()
        a[8] = special
        torch.testing.assert_close(dot(a, one), a @ one, equal_nan=True)
    assert dot(torch.tensor([float("inf"), 1]), torch.tensor([0.0, 1])).isnan()


def test_parts_of_buffers_and_gaps(rung: int) -> None:
    """Vectors that begin in the middle of a word of the ports, or are no vectors in memory."""
    (vadd, *_), (dot, *_) = units("vadd", rung), units("dot", rung)
    place = buffers.empty(101, torch.float32)
    whole = buffers.as_tensor(place)
    whole.copy_(vector(101, 5))
    for view in (whole[1:], whole[1:100], whole[::2], whole[4:9], whole[:100].reshape(10, 10).t()):
        same(vadd(view, view), view + view)
        flat = view.reshape(-1)
        exact = float(flat.double() @ flat.double())
        assert abs(float(dot(flat, flat)) - exact) <= bound(flat, flat)
    same(whole, vector(101, 5))


def test_several_units_take_a_part_each() -> None:
    found = units("vadd", 3)
    assert len(found) == 2
    a, b = vector(40001, 1), vector(40001, 2)
    calls: list[events.KernelCall] = []
    events.runs.subscribe(calls.append)
    try:
        same(found[0](a, b, helpers=found[1:]), a + b)
    finally:
        events.runs.unsubscribe(calls.append)
    assert {call.cu for call in calls} == {unit.cu for unit in found}
    first, *rest = units("dot", 3)
    exact = float(a.double() @ b.double())
    assert abs(float(first(a, b, helpers=rest)) - exact) <= bound(a, b)
    with pytest.raises(ArgumentError, match=r"helper dot_3_1 is a dot_3; expected other units"):
        found[0](a, b, helpers=rest)
    with pytest.raises(ArgumentError, match="expected other units"):
        found[0](a, b, helpers=found[:1])


def test_what_the_drivers_refuse(rung: int) -> None:
    (vadd, *_), (dot, *_) = units("vadd", rung), units("dot", rung)
    with pytest.raises(ArgumentError, match=r"b has shape \(3,\); expected \(2,\)"):
        vadd(torch.ones(2), torch.ones(3))
    with pytest.raises(ArgumentError, match="dtype torch.float64"):
        vadd(torch.ones(2).double(), torch.ones(2))
    with pytest.raises(ArgumentError, match="expected 1 dimensions"):
        dot(torch.ones(2, 2), torch.ones(2, 2))


@settings(max_examples=40)
@given(n=st.integers(1, 300_000), count=st.integers(1, 5))
def test_parts_cover_a_vector_once(n: int, count: int) -> None:
    shares = ladder.parts(n, count)
    assert 1 <= len(shares) <= count
    assert [first for first, _ in shares] == [
        sum(c for _, c in shares[:i]) for i in range(len(shares))
    ]
    assert sum(c for _, c in shares) == n
    assert all(c > 0 for _, c in shares)
    assert all(first % ladder.GRANULE == 0 for first, _ in shares)
    if len(shares) > 1:
        assert n // len(shares) >= ladder.LEAST_ELEMENTS


def test_registers_of_the_runs() -> None:
    at = [Operand(torch.empty(100_000), base, None) for base in (0x1000, 0x9000, 0xF000)]
    assert ladder.add_runs(*at, 100, 2) == [(0x1000, 0x9000, 0xF000, 100)]
    two = ladder.add_runs(*at, 100_000, 2)
    assert two[1] == (0x1000 + 4 * 50016, 0x9000 + 4 * 50016, 0xF000 + 4 * 50016, 49984)
    assert ladder.dot_runs(*at, 100_000, 2)[1] == (two[1][0], two[1][1], 0xF000 + 4, 49984)


# ---- operators -----------------------------------------------------------------------------------


def on_pl(function: Any, *names: str) -> Any:
    """Return what a function returns; its operators with these names must have run on the PL."""
    with watched() as calls:
        result = function()
    found = of(calls, *names)
    assert found, [c.op for c in calls]
    assert all(c.where == "PL" for c in found), [(c.op, c.where, c.reason) for c in found]
    return result


@settings(max_examples=10)
@given(
    shape=st.lists(st.integers(1, 9), max_size=3).map(tuple),
    seed=st.integers(0, 99),
)
def test_torch_adds_on_the_pl(rung: int, shape: tuple[int, ...], seed: int) -> None:
    n = torch.Size(shape).numel()
    a, b = (vector(n, seed + i, special=True).reshape(shape) for i in (0, 1))
    x, y = a.to("pynq"), b.to("pynq")
    same(on_pl(lambda: x + y, "add").cpu(), a + b)


def test_variants_of_add(rung: int) -> None:
    a, b = vector(33, 1), vector(33, 2)
    x, y = a.to("pynq"), b.to("pynq")
    out = torch.empty(33, device="pynq")
    assert on_pl(lambda: torch.add(x, y, out=out), "add") is out
    same(out.cpu(), a + b)
    z = x.clone()
    on_pl(lambda: z.add_(y), "add_")
    same(z.cpu(), a + b)
    leaf = a.to("pynq").requires_grad_()
    on_pl(lambda: leaf + y, "add").sum().backward()
    assert leaf.grad is not None
    same(leaf.grad.cpu(), torch.ones(33))


def test_torch_dot_on_the_pl(rung: int) -> None:
    for n in (1, 2, 1001, 40001):
        a, b = vector(n, n), vector(n, n + 1)
        x, y = a.to("pynq"), b.to("pynq")
        found = on_pl(lambda x=x, y=y: torch.dot(x, y), "dot")
        assert found.shape == ()
        assert abs(float(found) - float(a.double() @ b.double())) <= bound(a, b)
    out = torch.empty((), device="pynq")
    on_pl(lambda: torch.dot(x, y, out=out), "dot")
    assert float(out) == float(found)


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x, y: torch.add(x, y, alpha=2), "alpha"),
        (lambda x, y: x.double() + y.double(), "float32"),
        (lambda x, y: x + 1.5, ""),
        (lambda x, y: x[:4].unsqueeze(1) + y[:4], "one shape"),
        (lambda x, y: x[::2] + y[::2], "without a gap"),
    ],
)
def test_what_the_cpu_does_instead(function: Any, reason: str) -> None:
    loaded("ladder_2")
    a, b = vector(32, 1), vector(32, 2)
    with watched() as calls:
        found = function(a.to("pynq"), b.to("pynq"))
    same(found.cpu(), function(a, b))
    (call,) = of(calls, "add")
    assert call.where == "CPU"
    assert reason in call.reason


def test_wide_ports_take_no_half_words() -> None:
    loaded("ladder_4")
    a = vector(33, 1)
    x = a.to("pynq")
    with watched() as calls:
        same((x[1:] + x[:32]).cpu(), a[1:] + a[:32])
    (call,) = of(calls, "add")
    assert (call.where, "8 bytes" in call.reason) == ("CPU", True)


def test_a_result_of_odd_length_leaves_its_neighbours_alone() -> None:
    """The fourth rung writes the last word as a whole; nobody else's memory may lie there."""
    loaded("ladder_4")
    a, b = vector(15, 1), vector(15, 2)
    x, y = a.to("pynq"), b.to("pynq")
    kept = [x + y for _ in range(64)]
    for value in kept:
        same(value.cpu(), a + b)
    same(x.cpu(), a)
    same(y.cpu(), b)


# ---- models --------------------------------------------------------------------------------------


def cycles(kernel: str, n: int) -> float:
    return evidence.latency(kernel, 1.0, estimated=False, n=n).seconds


def test_the_fourth_rung_reaches_what_ddr_delivers() -> None:
    """At least 85 % of the modelled bandwidth, from the sizes of the ports up; never above it."""
    n = 1 << 20
    ddr = 2 * 1050e6 * 0.87 / 100e6  # bytes a cycle at 100 MHz
    assert pynq_z2.ddr_bytes_per_cycle() == pytest.approx(ddr)
    share = 12 * n / cycles("vadd_4", n) / ddr
    assert 0.85 <= share <= 1
    # Two ports of 64 bits with 8 bursts ahead read two elements a cycle, and more than DDR gives.
    ports = pynq_z2.Ports(count=2, outstanding=8)
    assert ports.limits["port"] == ports.limits["outstanding"] * 37.4 / 128 == 16 * 100e6
    for rung in (1, 2):
        assert 12 * n / cycles(f"vadd_{rung}", n) / ddr < 0.66


def test_each_rung_is_faster_than_the_one_before() -> None:
    n = 1 << 20
    one, two, three, four = (cycles(f"vadd_{rung}", n) for rung in RUNGS)
    assert one > 10 * two > 10 * (n + 1)
    assert three == two  # a unit of the third rung alone; there are two of them
    assert four < 0.67 * two
    one, two, three, four = (cycles(f"dot_{rung}", n) for rung in RUNGS)
    assert one > 2 * two
    assert two == three > 5 * n  # an addition waits 5 cycles for the one before
    assert 9 * four < two
    # No model may promise more than the ports give: 16 bytes a cycle.
    assert four >= n / 2
