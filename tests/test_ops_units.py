"""Products on several compute units: together, in proportion to their speed, or one at a time."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import torch
from device_helpers import DAWDLE, MOODY, PACED, closing, in_mood, int8, loaded, of, watched
from hypothesis import given, settings
from hypothesis import strategies as st

import pynq_torch
from pynq_torch.errors import KernelBusy
from pynq_torch.kernels import launch as launcher
from pynq_torch.kernels.epilogue import BIAS, FLOAT32, INT8, INT32, RELU
from pynq_torch.ops import units
from pynq_torch.ops.units import Matrix, finish, multiply
from pynq_torch.ops.units import units as current_units

pytestmark = [pytest.mark.timeout(120), pytest.mark.usefixtures("closing")]
__all__ = ["closing"]

CUS = ("gemm_0", "gemm_lut_0")


@pytest.fixture
def moody(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    board = pynq_torch.use_board("csim", kernels=[MOODY])
    monkeypatch.setattr(units, "BASE_TIMEOUT_S", 5.0)
    yield pynq_torch.load("gemm_dual")
    board.close()


def start_by_hand(driver: Any, a: torch.Tensor) -> tuple[Any, torch.Tensor, torch.Tensor]:
    """Start ``a @ a`` for 0.7 s; return the run, where its result will be, and what that is."""
    from pynq_torch import buffers

    a = in_mood(a, DAWDLE)
    out = buffers.empty(a.shape, "int32")
    run = driver.start_product(buffers.to_buffer(a), buffers.to_buffer(a), out)
    return run, torch.from_numpy(out), a.int() @ a.int()


# ---- splitting -----------------------------------------------------------------------------------


def test_a_product_is_on_both_units_at_the_same_time() -> None:
    loaded("gemm_dual")
    a, b = int8(400, 300), int8(300, 400, seed=1)
    x, w = a.to("pynq"), b.to("pynq")
    with watched() as calls:
        found = torch._int_mm(x, w)
    assert torch.equal(found.cpu(), a.int() @ b.int())
    (call,) = of(calls, "_int_mm")
    first, second = sorted(call.kernels, key=lambda run: run.start)
    assert {first.cu, second.cu} == set(CUS)
    assert first.seconds is not None and second.start < first.start + first.seconds
    assert sum(run.arguments["m"] for run in call.kernels) == 400  # type: ignore[misc]


@pytest.mark.parametrize(("m", "n"), [(1, 600), (3, 301), (301, 3), (600, 1), (1, 1)])
def test_the_longer_side_is_split(m: int, n: int) -> None:
    loaded("gemm_dual")
    a, b = int8(m, 500), int8(500, n, seed=1)
    with watched() as calls:
        found = torch._int_mm(a.to("pynq"), b.to("pynq"))
    assert torch.equal(found.cpu(), a.int() @ b.int())
    runs = of(calls, "_int_mm")[0].kernels
    cells = [(run.arguments["m"], run.arguments["n"]) for run in runs]
    assert sum(rows * columns for rows, columns in cells) == m * n  # type: ignore[operator,misc]
    assert {run.cu for run in runs} == (set(CUS) if max(m, n) > 1 else {"gemm_0"})


@settings(max_examples=40)
@given(
    m=st.integers(1, 70),
    k=st.integers(1, 70),
    n=st.integers(1, 70),
    kind=st.sampled_from([INT32, INT8, FLOAT32]),
    bias=st.booleans(),
    relu=st.booleans(),
    speeds=st.tuples(st.floats(0.01, 100), st.floats(0.01, 100)),
    seed=st.integers(0, 2**31),
)
def test_shares_of_any_size_with_every_epilogue(
    m: int, k: int, n: int, kind: int, bias: bool, relu: bool, speeds: Any, seed: int
) -> None:
    overlay = loaded("gemm_dual")
    found = current_units()
    for unit, speed in zip(found.gemms, speeds, strict=True):
        unit.measured = speed
    a, b = int8(m, k, seed=seed), int8(k, n, seed=seed + 1)
    scale = torch.rand(n) * 0.01 if kind != INT32 else None
    offset = torch.arange(n, dtype=torch.float32 if kind == FLOAT32 else torch.int32) - 5
    mode = kind | (BIAS if bias else 0) | (RELU if relu else 0)
    around = torch.full((m + 2, 4 * -(-n // 4) + 8), 3, dtype=units.result_dtype(mode))
    around = around.to("pynq")
    out = around[1:-1, 4 : 4 + n]
    least, units.WORTH_SPLITTING = units.WORTH_SPLITTING, 1
    try:
        multiply(
            Matrix(a.to("pynq"), overlay.device),
            Matrix(b.to("pynq"), overlay.device),
            mode=mode,
            scale=scale.to("pynq") if scale is not None else None,
            bias=offset.to("pynq") if bias else None,
            out=out,
        )
    finally:
        units.WORTH_SPLITTING = least
    expected = finish(a.int() @ b.int(), mode, scale, offset if bias else None)
    assert torch.equal(out.cpu(), expected)
    room = 4 + (n if kind != INT8 else 4 * -(-n // 4))
    assert bool((around[0] == 3).all() and (around[-1] == 3).all())
    assert bool((around[:, :4] == 3).all() and (around[:, room:] == 3).all())


def test_a_unit_whose_speed_nobody_has_seen_gets_its_share(moody: Any) -> None:
    large = int8(256, 256).to("pynq")
    run, *_ = start_by_hand(moody.kernels["gemm_lut_0"], int8(8, 8))
    torch._int_mm(large, large)  # now the speed of gemm_0 is known, that of gemm_lut_0 is not
    run.wait(10)
    with watched() as calls:
        torch._int_mm(large, large)
    rows = {run.cu: run.arguments["m"] for run in calls[-1].kernels}
    # As the models have it: about seven to one.
    assert 10 < rows["gemm_lut_0"] < rows["gemm_0"]  # type: ignore[operator]


def test_shares_follow_the_speed_that_runs_show(moody: Any) -> None:
    # By its model gemm is several times as fast as gemm_lut; here it is four times slower.
    a = in_mood(int8(256, 64), PACED, slice(None))
    x, w = a.to("pynq"), int8(64, 64).to("pynq")
    shares = []
    for _ in range(8):
        with watched() as calls:
            found = torch._int_mm(x, w)
        assert torch.equal(found.cpu(), a.int() @ w.cpu().int())
        shares.append({run.cu: run.arguments["m"] for run in of(calls, "_int_mm")[0].kernels})
    first, last = shares[0], shares[-1]
    assert first["gemm_0"] > 2 * first["gemm_lut_0"]  # type: ignore[operator]
    assert last["gemm_lut_0"] > last["gemm_0"]  # type: ignore[operator]


# ---- units that others use -----------------------------------------------------------------------


def test_operators_leave_a_unit_alone_that_was_started_by_hand(moody: Any) -> None:
    a = int8(64, 64)
    x = a.to("pynq")
    for name, other in (CUS, reversed(CUS)):
        run, out, product = start_by_hand(moody.kernels[name], a)
        with watched() as calls:
            found = torch._int_mm(x, x)
        assert torch.equal(found.cpu(), a.int() @ a.int())
        assert [k.cu for k in of(calls, "_int_mm")[0].kernels] == [other]
        run.wait(10)  # still ours to wait for, and its result is where it belongs
        assert torch.equal(out, product)


def test_where_this_thread_holds_every_unit_it_is_told_so_at_once(moody: Any) -> None:
    a = int8(64, 64)
    x = a.to("pynq")
    runs = [start_by_hand(moody.kernels[name], a) for name in CUS]
    begin = time.perf_counter()
    with pytest.raises(KernelBusy, match=r"gemm_0, gemm_lut_0.*wait\(\)"):
        torch._int_mm(x, x)
    assert time.perf_counter() - begin < 9  # not after the 10 s that a unit is waited for
    for run, out, product in runs:
        run.wait(10)
        assert torch.equal(out, product)
    assert torch.equal(torch._int_mm(x, x).cpu(), a.int() @ a.int())


def test_units_that_another_thread_holds_are_waited_for(
    moody: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    a = int8(64, 64)
    x = a.to("pynq")
    started, let_go = threading.Event(), threading.Event()

    def other() -> None:
        runs = [start_by_hand(moody.kernels[name], a) for name in CUS]
        started.set()
        let_go.wait(20)
        for run, *_ in runs:
            run.wait(10)

    thread = threading.Thread(target=other)
    thread.start()
    try:
        assert started.wait(20)
        monkeypatch.setattr(launcher, "BASE_TIMEOUT_S", 0.1)
        with pytest.raises(KernelBusy):
            torch._int_mm(x, x)
        monkeypatch.setattr(launcher, "BASE_TIMEOUT_S", 20.0)
        threading.Timer(0.1, let_go.set).start()
        assert torch.equal(torch._int_mm(x, x).cpu(), a.int() @ a.int())
    finally:
        let_go.set()
        thread.join()


def test_a_unit_that_was_started_by_its_registers(moody: Any) -> None:
    """The driver knows nothing of it until it reads AP_CTRL."""
    a = int8(64, 64)
    x = a.to("pynq")
    slow = in_mood(a, DAWDLE).to("pynq")
    out = torch.zeros(64, 64, dtype=torch.int32, device="pynq")
    gemm = moody.kernels["gemm_0"]
    operands = [torch.pynq.physical_address(t) for t in (slow, slow, out)]
    values = (*operands, 64, 64, 64, 64, 64, 64, 0, 0, 0)
    gemm.mmio.array[gemm._layout.span] = gemm._layout.of_integers(values)
    gemm.mmio.array[0] = 1
    with watched() as calls:
        found = torch._int_mm(x, x)
    assert torch.equal(found.cpu(), a.int() @ a.int())
    assert [k.cu for k in of(calls, "_int_mm")[0].kernels] == ["gemm_lut_0"]
    pynq_torch.wait(gemm, 10)
    assert torch.equal(out.cpu(), slow.cpu().int() @ slow.cpu().int())


def test_threads_share_the_units() -> None:
    loaded("gemm_dual")
    failures: list[BaseException] = []
    threads_of: dict[str, set[str]] = {}
    barrier = threading.Barrier(3)

    def work(seed: int) -> None:
        try:
            barrier.wait(20)
            for turn in range(25):
                m, k, n = 20 + seed, 40 + turn, 30 + turn
                a, b = int8(m, k, seed=turn), int8(k, n, seed=seed)
                found = torch._int_mm(a.to("pynq"), b.to("pynq"))
                assert torch.equal(found.cpu(), a.int() @ b.int())
        except BaseException as error:  # noqa: BLE001 (raised again below)
            failures.append(error)

    with watched() as calls:
        threads = [threading.Thread(target=work, args=(i,), name=f"worker {i}") for i in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if failures:
        raise failures[0]
    runs = [run for call in calls for run in call.kernels]
    for run in runs:
        threads_of.setdefault(run.thread, set()).add(run.cu)
    assert set(threads_of) == {"worker 0", "worker 1", "worker 2"}
    # No unit had two runs at once.
    for cu in CUS:
        spans = sorted((r.start, r.start + (r.seconds or 0)) for r in runs if r.cu == cu)
        assert spans and all(end <= begin for (_, end), (begin, _) in itertools.pairwise(spans))
