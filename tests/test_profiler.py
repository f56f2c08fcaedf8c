"""torch.pynq.profiler: what ran where, for how long, and why; and what torch.profiler sees."""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

import pynq_torch
from pynq_torch import events
from pynq_torch.board.runs import Run
from pynq_torch.kernels import launch
from pynq_torch.kernels.base import Kernel
from pynq_torch.profiler.tally import MAX_REASONS, OTHER_REASONS, Row, folded
from pynq_torch.torch_device import record

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def board() -> Iterator[Any]:
    board = pynq_torch.use_board("csim")
    yield board
    board.close()


@pytest.fixture
def profiler(board: Any) -> Iterator[Any]:
    """The profiler with nothing in it, and the overlay gemm."""
    pynq_torch.load("gemm")
    found = torch.pynq.profiler
    found.clear()
    yield found
    while found.is_in_ROI():
        found.disable()
    found.debug.disable()
    found.clear()
    assert not record.switches.active and not events.runs


def int8(*shape: int) -> torch.Tensor:
    return torch.randint(-128, 128, shape, dtype=torch.int8).to("pynq")


def operators(text: str) -> dict[str, Any]:
    """The rows of ExecTime-Raw by name."""
    return {row["name"]: row for row in json.loads(text)["operators"]}


# ---- what is counted -----------------------------------------------------------------------------


def test_time_is_divided_between_host_transfer_and_pl(profiler: Any) -> None:
    a, b = int8(64, 64), int8(64, 64)
    with profiler.profile() as p:
        for _ in range(3):
            torch._int_mm(a, b)
    row = operators(p.stats("ExecTime-Raw"))["aten::_int_mm"]
    assert (row["calls"], row["on_pl"], row["errors"], row["why"]) == (3, 3, 0, {})
    unit = row["units"]["gemm_0"]
    assert (unit["kernel"], unit["starts"]) == ("gemm", 3)
    assert (unit["kind"], unit["where"]) == ("measured", "csim on this PC")
    assert unit["cycles"] is None  # csim counts none
    assert unit["seconds"] == pytest.approx(row["pl_s"])
    assert row["pl_s"] > 0 and row["transfer_s"] > 0 and row["host_s"] > 0
    parts = row["host_s"] + row["transfer_s"] + row["pl_s"]
    assert parts == pytest.approx(row["total_s"])


def test_units_at_work_together_count_once_in_the_operator(profiler: Any) -> None:
    pynq_torch.load("gemm_dual")
    a, b = int8(512, 256), int8(256, 256)
    with profiler.profile() as p:
        torch._int_mm(a, b)
    row = operators(p.stats("ExecTime-Raw"))["aten::_int_mm"]
    busy = [unit["seconds"] for unit in row["units"].values()]
    assert len(busy) == 2
    assert max(busy) <= row["pl_s"] * 1.001 and row["pl_s"] < sum(busy)
    assert row["pl_s"] < row["total_s"]


def test_cycles_that_the_board_counted_add_up_beside_the_time(
    profiler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = int8(64, 64), int8(64, 64)
    kinds = ["cycles (RTL, AP_START to ap_done)", "cycles (RTL, AP_START to ap_done)", "model"]
    ended = (Run(n, 1e9, kind, cycles=1000 + n) for n, kind in enumerate(kinds))
    monkeypatch.setattr(Kernel, "last_run", property(lambda self: next(ended)))
    with profiler.profile() as p:
        for _ in kinds:
            torch._int_mm(a, b)
    unit = operators(p.stats("ExecTime-Raw"))["aten::_int_mm"]["units"]["gemm_0"]
    assert (unit["starts"], unit["cycles"], unit["counted"]) == (3, 2001, 2)
    assert unit["kind"] == "measured" and unit["seconds"] < 1e9  # the PC's clock, not the run's
    assert (p.units()["gemm_0"].cycles, p.units()["gemm_0"].counted) == (2001, 2)
    line = "  cycles: 2,001 of the PL's clock in 2 of 3 starts, counted in RTL"
    assert line in p.stats().splitlines()


@pytest.mark.parametrize(
    ("spans", "length"),
    [
        ([], 0),
        ([(1, 2)], 1),
        ([(0, 2), (1, 3), (5, 6)], 4),
        ([(0, 9), (1, 2), (3, 4)], 9),
        ([(5, 6), (0, 1)], 2),
    ],
)
def test_covered(spans: list[tuple[float, float]], length: float) -> None:
    assert events.covered(spans) == length


def test_copies_between_devices_are_transfers(profiler: Any) -> None:
    x = torch.ones(1000)
    with profiler.profile() as p:
        y = x.to("pynq")
    row = operators(p.stats("ExecTime-Raw"))["aten::copy_"]
    assert 0 < row["transfer_s"] <= row["total_s"] and row["pl_s"] == 0
    with profiler.profile() as p:
        y.clone()
    row = operators(p.stats("ExecTime-Raw"))["aten::clone"]
    assert row["transfer_s"] == 0 and row["host_s"] == row["total_s"] > 0
    assert "clone" not in p.stats("Unimpl")  # nothing is missing: it computes nothing


def test_regions_add_up_and_what_is_outside_does_not_count(profiler: Any) -> None:
    x = torch.ones(8, 8, device="pynq")
    for _ in range(2):
        profiler.enable()
        x + x
        profiler.disable()
        x + x
    data = json.loads(profiler.stats("ExecTime-Raw"))
    assert data["rois"] == 2
    (row,) = data["operators"]
    assert (row["name"], row["calls"], row["on_pl"]) == ("aten::add.Tensor", 2, 0)
    assert 0 < row["total_s"] < data["roi_s"]
    profiler.clear()
    assert json.loads(profiler.stats("ExecTime-Raw"))["operators"] == []


def test_profiles_are_independent(profiler: Any) -> None:
    x = torch.ones(4, device="pynq")
    profiler.enable()
    with profiler.profile() as outer:
        x + x
        with profiler.profile() as inner:
            x * x
    profiler.disable()
    assert set(operators(inner.stats("ExecTime-Raw"))) == {"aten::mul.Tensor"}
    both = {"aten::mul.Tensor", "aten::add.Tensor"}
    assert set(operators(outer.stats("ExecTime-Raw"))) == both
    assert set(operators(profiler.stats("ExecTime-Raw"))) == both
    with inner:
        x * x
    assert inner.rois == 2
    assert operators(inner.stats("ExecTime-Raw"))["aten::mul.Tensor"]["calls"] == 2


def test_is_in_roi(profiler: Any) -> None:
    assert not profiler.is_in_ROI()
    profiler.disable()
    profiler.enable()
    profiler.enable()
    assert profiler.is_in_ROI()
    profiler.disable()
    assert not profiler.is_in_ROI()
    with pytest.raises(ZeroDivisionError), profiler.profile():
        assert profiler.is_in_ROI()
        raise ZeroDivisionError
    assert not profiler.is_in_ROI()


def test_a_call_that_fails_is_counted(profiler: Any) -> None:
    x = torch.ones(2, 3, device="pynq")
    with profiler.profile() as p, pytest.raises(RuntimeError):
        x @ x
    assert operators(p.stats("ExecTime-Raw"))["aten::mm"]["errors"] == 1
    assert "1 call ended in an error." in p.stats("ExecTime")
    with profiler.profile() as p:  # and the thread records again
        x + x
    assert operators(p.stats("ExecTime-Raw"))["aten::add.Tensor"]["calls"] == 1


def test_a_call_that_fails_on_the_pl_ran_there(
    profiler: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(launch, "BASE_TIMEOUT_S", 0.5)
    unit = pynq_torch.load("gemm").gemm_0
    given = torch.ones(4, 4, dtype=torch.int8), torch.ones(4, 4, dtype=torch.int8)
    out = pynq_torch.buffers.empty((4, 4), "int32")
    other = threading.Thread(target=lambda: unit.start_product(*given, out), name="other")
    other.start()
    other.join()
    a = int8(4, 4)
    with profiler.profile() as p, pytest.raises(pynq_torch.errors.KernelBusy):
        torch._int_mm(a, a)
    row = operators(p.stats("ExecTime-Raw"))["aten::_int_mm"]
    assert (row["on_pl"], row["errors"], row["why"]) == (1, 1, {})
    assert "PL" not in p.stats("Unimpl").replace("on the PL", "")


def test_backward_counts_too(profiler: Any) -> None:
    x = torch.ones(4, 4, device="pynq", requires_grad=True)
    y = torch.mm(x, x).sum()
    with profiler.profile() as p:
        y.backward()
    assert operators(p.stats("ExecTime-Raw"))["aten::mm"]["calls"] == 2


def test_threads(profiler: Any) -> None:
    def work() -> None:
        x = torch.ones(4, device="pynq")
        for _ in range(200):
            x + x

    threads = [threading.Thread(target=work) for _ in range(4)]
    with profiler.profile() as p:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert operators(p.stats("ExecTime-Raw"))["aten::add.Tensor"]["calls"] == 800


def test_reasons(profiler: Any) -> None:
    x = torch.ones(4, 4, device="pynq")
    with profiler.profile() as p:
        x + x
        x @ x
        torch._int_mm(x.to(torch.int8), x.to(torch.int8))
    rows = operators(p.stats("ExecTime-Raw"))
    (missing,) = rows["aten::add.Tensor"]["why"]
    assert "pynq_torch.load(" in missing  # what would help
    (reason,) = rows["aten::mm"]["why"]
    assert "allow_int8" in reason
    unimplemented = p.stats("Unimpl")
    assert re.search(r"^aten::mm +1 .*floating", unimplemented, re.M)
    assert "_int_mm" not in unimplemented


def test_the_switch_of_another_thread_is_not_advised_again(profiler: Any) -> None:
    x = torch.ones(4, 4, device="pynq", requires_grad=True)
    advice = "opt in to int8 with torch.backends.pynq.matmul.allow_int8 = True"

    def reason_of(act: Any) -> str:
        with profiler.profile() as p:
            act()
        (reason,) = operators(p.stats("ExecTime-Raw"))["aten::mm"]["why"]
        return str(reason)

    def in_a_thread() -> None:
        thread = threading.Thread(target=lambda: x.detach() @ x.detach())
        thread.start()
        thread.join()

    def set_and_end() -> None:
        torch.backends.pynq.matmul.allow_int8 = True

    for allow in (True, False):  # with it off, backward() would not have heeded it either
        with torch.backends.pynq.flags(allow_int8=allow):
            product = x @ x
            backward = reason_of(lambda: product.backward(torch.ones_like(x)))  # noqa: B023
        assert "the backward pass stays exact" in backward and "thread that set it" in backward
        assert advice not in backward
    with torch.backends.pynq.flags(allow_int8=True):
        other = reason_of(in_a_thread)
    assert "is on in another thread" in other and advice not in other
    # A thread takes the switch with it.
    thread = threading.Thread(target=set_and_end)
    thread.start()
    thread.join()
    assert advice in reason_of(in_a_thread) and advice in reason_of(lambda: x @ x)


def test_many_reasons_are_bounded(profiler: Any) -> None:
    row = Row("aten::mm")
    for size in range(1000):
        row.add(events.OperatorCall("aten::mm", (), reason=f"K is {size}"))
    assert len(row.why) == MAX_REASONS + 1
    assert row.why[OTHER_REASONS].calls == 1000 - MAX_REASONS


# ---- how it is shown -----------------------------------------------------------------------------


@pytest.fixture
def profile(profiler: Any) -> Any:
    """A profile with operators on the PL and on the CPU."""
    a, x = int8(32, 32), torch.ones(8, 8, device="pynq")
    with profiler.profile() as p:
        torch._int_mm(a, a)
        x.exp()
        x @ x
        torch.nn.functional.scaled_dot_product_attention(*[torch.ones(1, 1, 8, 8).to("pynq")] * 3)
    return p


def test_the_table_fits_and_says_where_every_time_is_from(profile: Any) -> None:
    for key in ("ExecTime", "Unimpl"):
        assert max(map(len, profile.stats(key).splitlines())) <= 100
    lines = profile.stats("ExecTime").splitlines()
    head, kinds = lines[1], lines[2]
    assert head.split()[-5:] == ["total", "host", "transfer", "PL", "share"]
    assert kinds.split() == ["measured"] * 4
    for column in ("total", "host", "transfer", "PL"):  # each above its kind
        assert head.rindex(column) + len(column) in [
            m.end() for m in re.finditer("measured", kinds)
        ]
    text = " ".join(lines)
    assert (
        "total, host, transfer: measured (CPU of this PC); PL: measured (csim on this PC)" in text
    )
    row = next(line for line in lines if line.startswith("aten::_int_mm"))
    assert row.split()[1:3] == ["1", "1"]
    assert next(line for line in lines if line.startswith("gemm_0")).startswith(
        "gemm_0 (kernel gemm): 1 start, busy for "
    )


def test_without_the_pl_no_kind_is_claimed_for_it(profiler: Any) -> None:
    with profiler.profile() as p:
        torch.ones(2, device="pynq").exp()
    text = p.stats("ExecTime")
    assert "PL: not used" in text and text.splitlines()[2].split()[-1] == "-"
    assert json.loads(p.stats("ExecTime-Raw"))["kinds"]["pl_s"] == []


def test_latex(profile: Any) -> None:
    text = profile.stats("ExecTime-Latex")
    assert r"aten::\_int\_mm & 1 & 1 & " in text
    rows = [line for line in text.splitlines() if line.endswith(r"\\")]
    assert len(rows) >= 6 and {line.count("&") for line in rows} == {6}
    assert r"measured, ms" in text
    outside = re.sub(r"\\[_%&#$]", "", "\n".join(rows))
    assert "_" not in outside and "%" not in outside


def test_trimming_folds_small_rows_and_loses_nothing() -> None:
    rows = [
        Row(name, calls=n, seconds=s) for name, n, s in (("a", 1, 90), ("b", 2, 9), ("c", 3, 1))
    ]
    assert [r.name for r in folded(rows, 0)] == ["a", "b", "c"]
    kept = folded(rows, 0.1)
    assert [(r.name, r.calls, r.seconds) for r in kept] == [
        ("a", 1, 90),
        ("others (2 operators)", 5, 10),
    ]
    assert folded(rows, 0.02)[-1].name == "others (1 operator)"


def test_trimming_in_every_form(profile: Any) -> None:
    whole, trimmed = (
        json.loads(profile.stats("ExecTime-Raw", trimming=share))["operators"]
        for share in (False, 0.999)
    )
    assert len(trimmed) == 1 and trimmed[0]["name"].startswith(f"others ({len(whole)}")
    assert trimmed[0]["calls"] == sum(row["calls"] for row in whole)
    assert trimmed[0]["units"].keys() == {"gemm_0"}
    assert "others" in profile.stats("ExecTime", trimming=0.999)
    assert "others" in profile.stats("ExecTime-Latex", trimming=0.999)
    assert profile.stats("ExecTime-Raw", trimming=True) == profile.stats("ExecTime-Raw", 0.01)


def test_parts_come_in_the_order_asked_for(profile: Any) -> None:
    latex, unimplemented = profile.stats("ExecTime-Latex"), profile.stats("Unimpl")
    assert profile.stats(["Unimpl", "ExecTime-Latex"]) == f"{unimplemented}\n\n{latex}"
    assert profile.stats().endswith(unimplemented)


@pytest.mark.parametrize(
    ("key", "trimming", "words"),
    [("Time", False, "'Time'"), ([], False, "none"), ("ExecTime", 1.5, "1.5")],
)
def test_what_cannot_be_shown(profiler: Any, key: Any, trimming: Any, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        profiler.stats(key, trimming)


# ---- torch.profiler ------------------------------------------------------------------------------


def trace(path: Path, run: Any) -> list[dict[str, Any]]:
    """Complete events of torch's own trace, in order of their begin."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
        run()
    p.export_chrome_trace(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    return sorted((e for e in events if e.get("ph") == "X"), key=lambda e: e["ts"])


def test_a_compute_unit_lies_inside_its_operator(profiler: Any, tmp_path: Path) -> None:
    small, large = int8(16, 16), int8(512, 512)
    torch._int_mm(large, large)
    profiler.clear()

    def run() -> None:
        torch._int_mm(small, small)
        torch._int_mm(large, large)

    with profiler.profile() as p:
        events = trace(tmp_path / "trace.json", run)
    units = [e for e in events if e["name"] == "PL gemm_0"]
    callers = [e for e in events if e["name"] == "aten::_int_mm"]
    assert len(units) == len(callers) == 2
    for unit, caller in zip(units, callers, strict=True):
        assert unit["tid"] == caller["tid"]
        assert caller["ts"] <= unit["ts"]
        assert unit["ts"] + unit["dur"] <= caller["ts"] + caller["dur"]
    assert units[0]["dur"] < units[1]["dur"]
    # torch's clock and ours saw the same.
    seconds = p.units()["gemm_0"].seconds
    assert sum(e["dur"] for e in units) * 1e-6 == pytest.approx(seconds, rel=0.5)


def test_units_at_the_same_time_make_events_that_nest(profiler: Any, tmp_path: Path) -> None:
    overlay = pynq_torch.load("gemm_dual")
    units = overlay.gemm_0, overlay.gemm_lut_0
    a, b = torch.ones(64, 64, dtype=torch.int8), torch.ones(64, 64, dtype=torch.int8)
    c = [pynq_torch.buffers.empty((64, 64), "int32") for _ in units]

    def run() -> None:
        runs = [u.start_product(a, b, out) for u, out in zip(units, c, strict=True)]
        for r in runs:
            r.wait()

    events = [e for e in trace(tmp_path / "t.json", run) if e["name"].startswith("PL ")]
    names = [e["name"] for e in events]
    assert names == ["PL gemm_0", "PL gemm_0 + gemm_lut_0", "PL gemm_lut_0"]
    for before, after in itertools.pairwise(events):
        assert before["ts"] + before["dur"] <= after["ts"]


def test_a_run_that_fails_ends_its_event(profiler: Any, tmp_path: Path) -> None:
    overlay = pynq_torch.load("stream")

    def run() -> None:
        with pytest.raises(pynq_torch.errors.KernelTimeout):
            overlay.scale_stream.start(gain=1.0, offset=0.0).wait(timeout_s=0.03)
        torch.ones(3, device="pynq").exp()

    events = trace(tmp_path / "t.json", run)
    unit = next(e for e in events if e["name"] == "PL scale_stream_0")
    after = next(e for e in events if e["name"] == "aten::exp")
    assert unit["dur"] >= 30e3 and unit["ts"] + unit["dur"] <= after["ts"]


# ---- lines, and nothing --------------------------------------------------------------------------


def test_one_line_a_decision(profiler: Any, capsys: Any) -> None:
    a, x = int8(4, 4), torch.ones(2, 3, device="pynq")
    profiler.debug.enable()
    assert profiler.debug.is_enabled()
    torch._int_mm(a, a)
    x + x
    with pytest.raises(RuntimeError):
        x @ x
    profiler.debug.disable()
    x + x
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3
    assert re.fullmatch(
        r"pynq: aten::_int_mm\(int8\[4x4\], int8\[4x4\]\) -> PL gemm_0, [\d.]+ .s", lines[0]
    )
    assert re.fullmatch(
        r"pynq: aten::add\.Tensor\(float32\[2x3\], float32\[2x3\]\) -> CPU, [\d.]+ .s: "
        r"no .* loaded.*: pynq_torch\.load\('\w+'\)",
        lines[1],
    )
    assert lines[2].endswith("; ended in RuntimeError")


@pytest.mark.parametrize(("value", "count"), [("1", 1), ("0", 0)])
def test_the_environment_switches_lines_on(value: str, count: int) -> None:
    program = "import torch\nx = torch.ones(2, device='pynq')\nx + x"
    environment = {**os.environ, "TORCH_PYNQ_DEBUG": value, "PYNQ_TORCH_BOARD": "csim"}
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=100,
        env=environment,
        check=True,
    )
    lines = [line for line in done.stderr.splitlines() if "aten::add.Tensor" in line]
    assert len(lines) == count


def test_everything_is_off_at_first_and_afterwards(profiler: Any) -> None:
    assert not record.switches.active and not events.runs
    with profiler.profile():
        assert record.switches.active and events.runs
    assert not record.switches.active and not events.runs
    assert events.operators.subscribers == ()
