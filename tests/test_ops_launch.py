"""Runs of a kernel for operators: several units, units in other hands, units that fail."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from device_helpers import of, watched

import pynq_torch
from pynq_torch.errors import KernelBusy, KernelFault, KernelTimeout
from pynq_torch.kernels import launch as launcher
from pynq_torch.ops import launch
from pynq_torch.ops.launch import available, operand, room

CRASH, HANG, DAWDLE = 101.0, 102.0, 103.0
#: Two parts, one for each unit of overlay `ladder_3`.
N = 40_000


@pytest.fixture(scope="module")
def board() -> Iterator[Any]:
    made = pynq_torch.use_board("csim", kernels=[Path(__file__).parent / "moody_vadd"])
    yield made
    made.close()


@pytest.fixture(autouse=True)
def overlay(board: Any) -> Any:
    return pynq_torch.load("ladder_3")


def pair(first: float = 0.0, second: float = 0.0) -> tuple[torch.Tensor, torch.Tensor]:
    """Return two vectors whose parts put the units into a mood."""
    x, y = torch.arange(float(N)), torch.ones(N)
    x[0], x[N // 2] = first, second
    return x, y


def test_two_units_share_an_operator_side_by_side() -> None:
    x, y = pair(DAWDLE, DAWDLE)
    with watched() as calls:
        found = x.to("pynq") + y.to("pynq")
    assert torch.equal(found.cpu(), x + y)
    (call,) = of(calls, "add")
    first, second = call.kernels
    assert {first.cu, second.cu} == {"vadd_3_0", "vadd_3_1"}
    assert first.seconds is not None and second.start < first.start + first.seconds


def test_more_runs_than_units() -> None:
    x, y = pair()
    a, b, c = operand(x.to("pynq")), operand(y.to("pynq")), room((N,), torch.float32)
    step = N // 8
    runs = [
        (a.address + 4 * i, b.address + 4 * i, c.address + 4 * i, step) for i in range(0, N, step)
    ]
    launch.launch(available("vadd_3"), runs, reads=(a, b), writes=(c,))
    assert torch.equal(c.tensor.cpu(), x + y)


@pytest.mark.parametrize("moods", [(CRASH, 0.0), (0.0, CRASH), (CRASH, CRASH), (CRASH, DAWDLE)])
def test_a_crash_is_an_error_and_changes_nothing(moods: tuple[float, float]) -> None:
    x, y = pair(*moods)
    there, other = x.to("pynq"), y.to("pynq")
    with pytest.raises(KernelFault, match="vadd_3_[01] crashed"):
        there.add_(other)
    assert torch.equal(there.cpu(), x) and torch.equal(other.cpu(), y)
    pynq_torch.load("ladder_3")
    there[0] = there[N // 2] = 0
    assert torch.equal((there + other).cpu(), there.cpu() + y)


@pytest.mark.parametrize("moods", [(HANG, 0.0), (0.0, HANG)])
def test_a_hang_ends_in_a_diagnosis(
    moods: tuple[float, float], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launcher, "BASE_TIMEOUT_S", 0.4)
    x, y = pair(*moods)
    there, other = x.to("pynq"), y.to("pynq")
    with pytest.raises(KernelTimeout, match="vadd_3_[01]"):
        _ = there + other
    assert torch.equal(there.cpu(), x)


def test_a_unit_in_other_hands_is_left_alone(overlay: Any) -> None:
    x, y = pair()
    own = [pynq_torch.buffers.empty_tensor(100) for _ in range(3)]
    own[0][0] = DAWDLE
    run = overlay.vadd_3_0.start(*own, 100)
    with watched() as calls:
        found = x.to("pynq") + y.to("pynq")
    assert torch.equal(found.cpu(), x + y)
    (call,) = of(calls, "add")
    assert "vadd_3_1" in {k.cu for k in call.kernels}
    run.wait()


def test_units_that_this_thread_holds_are_named(overlay: Any) -> None:
    x, y = (t.to("pynq") for t in pair())
    own = [pynq_torch.buffers.empty_tensor(100) for _ in range(3)]
    own[0][0] = DAWDLE
    runs = [overlay.vadd_3_0.start(*own, 100), overlay.vadd_3_1.start(*own, 100)]
    with pytest.raises(KernelBusy, match="vadd_3_0, vadd_3_1"):
        _ = x + y
    for run in runs:
        run.wait()
    assert torch.equal((x + y).cpu(), x.cpu() + y.cpu())


def test_threads_take_turns() -> None:
    x, y = (t.to("pynq") for t in pair())
    expected = x.cpu() + y.cpu()
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(10):
            if not torch.equal((x + y).cpu(), expected):
                wrong.append(index)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong and not any(t.is_alive() for t in threads)


def test_without_the_overlay_the_cpu_does_it() -> None:
    x, y = pair()
    there, other = x.to("pynq"), y.to("pynq")
    pynq_torch.load("stream")
    with watched() as calls:
        assert torch.equal((there + other).cpu(), x + y)
    (call,) = of(calls, "add")
    assert call.where == "CPU" and "pynq_torch.load(" in call.reason


def test_a_closed_board_serves_nobody() -> None:
    """Its last overlay is still the latest one when the next board has none."""
    other = pynq_torch.use_board("csim")
    pynq_torch.load("pointwise")
    other.close()
    pynq_torch.use_board("csim")
    x = torch.ones(3, device="pynq")
    assert (x * 2).tolist() == [2, 2, 2]


def test_no_row_of_the_table_hides_another() -> None:
    from collections import Counter

    from pynq_torch.ops import TABLE

    rows = Counter((overload, row.kernels) for row in TABLE for overload in row.overloads.split())
    assert [key for key, count in rows.items() if count > 1] == []
