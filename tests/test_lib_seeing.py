"""Verdicts, durations, charts and views: what a person looks at."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

import pynq_torch
from pynq_torch import buffers, plot, timing, verify, widgets
from pynq_torch.errors import VerificationError
from pynq_torch.timing import Duration


@pytest.fixture(scope="module")
def board() -> Iterator[Any]:
    board = pynq_torch.use_board("csim")
    yield board
    board.close()


# ---- verify --------------------------------------------------------------------------------------


def test_a_verdict_prints_its_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    a = torch.arange(6, dtype=torch.int32).reshape(2, 3)
    verify.equal(a, a.clone(), name="gemm")
    assert capsys.readouterr().out == "gemm: int32[2x3], max error 0, tolerance 0 (exact): PASS\n"
    verify.close(a.float() + 0.25, a, atol=0.5, rtol=0, name="c")
    out = capsys.readouterr().out
    assert out == "c: float32[2x3], max error 0.25, tolerance 0.5 + 0 * |reference|: PASS\n"


@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
    data=st.data(),
)
def test_the_first_wrong_index_is_named(shape: tuple[int, ...], data: st.DataObject) -> None:
    reference = np.arange(np.prod(shape), dtype=np.int32).reshape(shape)
    result = reference.copy()
    places = data.draw(st.sets(st.integers(0, result.size - 1), min_size=1, max_size=4))
    for place in places:
        result.flat[place] += 5
    first = tuple(int(i) for i in np.unravel_index(min(places), shape))
    with pytest.raises(VerificationError) as caught:
        verify.equal(result, reference)
    text = str(caught.value)
    assert f"{len(places)} of {result.size} values are wrong" in text
    assert f"index {list(first)}: found {result[first]}, expected {reference[first]}" in text
    assert "max error 5" in text


def test_a_single_wrong_value_needs_no_index() -> None:
    with pytest.raises(VerificationError, match=r"^starts: found 1, expected 2, tolerance 0"):
        verify.equal(1, 2, "starts")


def test_shapes_and_dtypes_are_part_of_equality() -> None:
    with pytest.raises(VerificationError, match=r"shape is \(2,\); expected \(3,\)"):
        verify.equal(torch.zeros(2), torch.zeros(3))
    with pytest.raises(VerificationError, match="dtype is int64; expected int32"):
        verify.equal(torch.zeros(2).long(), torch.zeros(2).int())
    verify.equal(torch.zeros(2).long(), torch.zeros(2).int(), check_dtype=False)


@pytest.mark.parametrize("nothing", [None, "3", [1, None], [[1, 2], 3], [1, [2, 3]]])
def test_what_is_no_number_is_found(nothing: Any) -> None:
    found = f"found {re.escape(repr(nothing))}; expected "
    for check in (verify.equal, verify.close):
        with pytest.raises(VerificationError, match=f"^starts: {found}3$"):
            check(nothing, 3, name="starts")
    with pytest.raises(VerificationError, match=f"^starts: {found}3$"):
        verify.within(nothing, 3, 1, "starts")
    with pytest.raises(VerificationError, match=f"{found}2 numbers"):
        verify.equal(nothing, torch.zeros(2))
    with pytest.raises(VerificationError, match=f"^f: {found}a number"):
        verify.numbers(nothing, "f")
    with pytest.raises(VerificationError, match=f"^f: {found}numbers"):
        verify.numbers(nothing, "f", None)


def test_numbers_come_back_as_they_are() -> None:
    for value in (3, 2.5, True, np.float32(1), torch.tensor(4)):
        assert verify.numbers(value, "f") is value
    pair = (25, 9)
    assert verify.numbers(pair, "f", (2,)) is pair
    matrix = torch.zeros(2, 3)
    assert verify.numbers(matrix, "f", None) is matrix
    with pytest.raises(VerificationError, match=r"found float32 of shape \(2, 3\)"):
        verify.numbers(matrix, "f")
    with pytest.raises(VerificationError, match="f: found 3; expected 2 numbers"):
        verify.numbers(3, "f", (2,))


def test_special_values() -> None:
    odd = torch.tensor([float("nan"), float("inf"), -0.0])
    verify.equal(odd, torch.tensor([float("nan"), float("inf"), 0.0]))
    verify.close(odd, odd)
    with pytest.raises(VerificationError, match=r"index \[0\]: found nan, expected 1"):
        verify.close(torch.tensor([float("nan")]), torch.tensor([1.0]))
    with pytest.raises(VerificationError, match="found inf"):
        verify.close(torch.tensor([float("inf")]), torch.tensor([1e30]), rtol=1)
    verify.equal(torch.zeros(0, 3), torch.zeros(0, 3))
    verify.equal(torch.tensor(3.0), torch.tensor(3.0))
    verify.close(torch.ones(2, dtype=torch.bfloat16), torch.ones(2))
    wide = torch.tensor([2**62, 1])
    with pytest.raises(VerificationError, match="max error 1"):
        verify.equal(wide, wide + torch.tensor([1, 0]))
    with pytest.raises(ValueError, match="at least 0"):
        verify.close(wide, wide, rtol=-1)


def test_every_error_has_its_own_bound(capsys: pytest.CaptureFixture[str]) -> None:
    reference = torch.tensor([1.0, 2.0, 4.0])
    bound = torch.tensor([0.5, 0.0, 2.0], dtype=torch.float64)
    verify.within(reference + torch.tensor([0.25, 0, -2.0]), reference, bound, "c")
    out = capsys.readouterr().out
    wanted = "max error 2, tolerance its bound, of which 100% is used at most: PASS\n"
    assert out == f"c: float32[3], {wanted}"
    verify.within(torch.zeros(0), torch.zeros(0), 0.0)
    with pytest.raises(VerificationError, match=r"1 of 3 .* index \[1\]: found 2\.25, expected 2"):
        verify.within(reference + 0.25, reference, bound)
    for odd in (float("nan"), float("inf")):
        with pytest.raises(VerificationError, match=r"index \[0\]"):
            verify.within(torch.tensor([odd]), torch.tensor([odd]), 1.0)
    for wrong in (-1.0, float("nan")):
        with pytest.raises(ValueError, match="at least 0"):
            verify.within(reference, reference, wrong)


def test_expected_errors_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    with verify.shows(ValueError, hide=r"0x[0-9a-f]+") as shown:
        raise ValueError("at 0x1234abcd")
    assert capsys.readouterr().out == "ValueError: at ...\n"
    assert isinstance(shown.error, ValueError)
    verify.shows(ZeroDivisionError, lambda: 1 / 0)
    with pytest.raises(VerificationError, match="no error was raised; expected ValueError"):
        verify.shows(ValueError, lambda: 1)
    with pytest.raises(KeyError):
        verify.shows(ValueError, lambda: {}["x"])


# ---- timing and plot -----------------------------------------------------------------------------


def test_a_baseline_has_one_thread(board: Any) -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(3)
    try:
        seen: dict[str, int] = {}
        on_cpu = timing.measure(lambda: seen.update(cpu=torch.get_num_threads()), 2, on="cpu")
        on_pl = timing.measure(lambda: seen.update(pl=torch.get_num_threads()), 2)
        with pytest.raises(ZeroDivisionError):
            timing.measure(lambda: 1 / 0, on="cpu")
        assert seen == {"cpu": 1, "pl": 3}
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
    assert on_cpu.provenance == "measured (CPU of this PC, one thread, median of 2)"
    assert on_pl.provenance == "measured (csim on this PC, median of 2)"


@pytest.mark.parametrize("warmup", [0, 1, 2])
def test_calls_before_the_measurement_do_not_count(
    board: Any, monkeypatch: pytest.MonkeyPatch, warmup: int
) -> None:
    clock = [0.0]
    monkeypatch.setattr(timing.time, "perf_counter", lambda: clock[0])
    left = [100.0] * warmup + [1.0, 4.0, 2.0, 3.0, 90.0]
    taken = timing.measure(
        lambda: clock.__setitem__(0, clock[0] + left.pop(0)), 5, on="cpu", warmup=warmup
    )
    # Nor does a run that something else delayed.
    assert (taken.low, taken.seconds, taken.high, left) == (2.0, 3.0, 4.0, [])


def test_a_duration_says_where_it_comes_from(board: Any) -> None:
    taken = timing.measure(lambda: None, repeat=3, label="nothing")
    assert taken.provenance == "measured (csim on this PC, median of 3)"
    assert timing.where_measured("cpu") == "CPU of this PC"
    assert taken.low is not None and taken.high is not None
    assert taken.low <= taken.seconds <= taken.high
    modelled = timing.model("vadd", 100e6, n=1000)
    assert modelled.provenance == "model (at 100 MHz)"
    assert modelled.seconds == timing.model_cycles("vadd", n=1000) / 100e6  # type: ignore[operator]
    assert timing.model_cycles("no_such_kernel") is None
    with pytest.raises(ValueError, match=r"no description\.json"):
        timing.model("no_such_kernel", 1e8)
    for bad in (
        {"kind": "guessed"},
        {"kind": "measured"},
        {"kind": "model"},
        {"kind": "measured", "where": "x", "part": "y"},
    ):
        with pytest.raises(ValueError, match=r"kind|where|clock_hz|part"):
            Duration(1.0, **bad)  # type: ignore[arg-type]


@pytest.fixture
def axes() -> Iterator[Any]:
    import matplotlib

    matplotlib.use("agg")
    import matplotlib.pyplot as plt

    yield plt
    plt.close("all")


MEASURED = Duration(2e-3, "measured", "csim", "csim on this PC", 5, low=1e-3, high=3e-3)
MODEL = Duration(1e-3, "model", "model", clock_hz=1e8)


def _texts(ax: Any) -> str:
    ax.figure.canvas.draw()
    ticks = [t.get_text() for t in ax.get_xticklabels()]
    legend = ax.get_legend()
    entries = [t.get_text() for t in legend.get_texts()] if legend else []
    notes = [t.get_text() for t in ax.texts]
    return "\n".join([ax.get_title(), ax.get_xlabel(), ax.get_ylabel(), *ticks, *entries, *notes])


def test_a_chart_prints_its_provenance(axes: Any) -> None:
    text = _texts(plot.times([MEASURED], title="vadd"))
    assert "measured (csim on this PC, median of 5)" in text
    mixed = _texts(plot.times([MEASURED, MODEL]))
    assert "(measured)" in mixed and "(model)" in mixed and "at 100 MHz" in mixed
    stack = [Duration(1.0, "model", "x", clock_hz=1e8, part=p) for p in ("compute", "transfer")]
    assert "transfer" in _texts(plot.times([stack]))
    lines = _texts(plot.sweep([1, 2], {"a": [MEASURED] * 2, "b": [MODEL] * 2}, xlabel="n"))
    assert "a (measured)" in lines and "b (model)" in lines


def test_the_parts_of_a_chart_can_be_told_apart(axes: Any) -> None:
    slow = Duration(1.0, "measured", "a", "this PC", 3, low=0.5, high=2.0)
    ax = plot.times([slow, Duration(1.0, "measured", "b", "this PC", part="compute")])
    entries = ax.get_legend().get_patches()
    assert len({patch.get_facecolor() for patch in entries}) == 2
    assert ax.texts[0].xy[1] == 2.0  # above the whisker, not across it


def test_kinds_are_not_mixed_silently(axes: Any) -> None:
    with pytest.raises(plot.ProvenanceError, match="no measurement"):
        plot.speedup(MEASURED, [MODEL])
    assert "mixed: measured / model" in _texts(plot.speedup(MEASURED, [MODEL], allow_mixed=True))
    board = Duration(1e-3, "measured", "board", "PL of the board")
    with pytest.raises(plot.ProvenanceError):
        plot.speedup(MEASURED, [board])  # two machines
    with pytest.raises(plot.ProvenanceError, match="stacks"):
        plot.times([[MEASURED, MODEL]])
    with pytest.raises(plot.ProvenanceError, match="mixes"):
        plot.sweep([1, 2], {"a": [MEASURED, MODEL]})
    assert "1x" in _texts(plot.speedup(MEASURED, [MEASURED.named("again")]))


def test_tables_are_text_and_html() -> None:
    reference = torch.tensor([1.0, 2.0, 4.0])
    table = plot.error_table({"a<b": reference + torch.tensor([0, 0, 1.0])}, reference)
    assert "2 of 3" in str(table)
    assert "a&lt;b" in table._repr_html_()
    with pytest.raises(ValueError, match="shape"):
        plot.error_table({"x": torch.zeros(2)}, reference)


# ---- widgets -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def overlay(board: Any) -> Any:
    return pynq_torch.load("stream")


def test_register_map_is_static_by_itself(overlay: Any) -> None:
    view = widgets.register_map(overlay.scale_stream, live=False)
    assert "0x00  CTRL" in repr(view)
    assert "AP_IDLE" in repr(view)
    assert "(write-only)" in view._repr_html_()
    assert [row.offset for row in view.rows] == sorted(row.offset for row in view.rows)


def test_register_controls_write_and_say_what_is_wrong(overlay: Any) -> None:
    table, _, (choice, value, write), message = _unpack(
        widgets.register_map(overlay.axi_dma_0, live=False).controls()
    )
    source = buffers.to_buffer(torch.zeros(4)).physical_address
    choice.value = 0x18
    for text, said in (
        ("x", "no number"),
        (str(1 << 32), "does not fit"),
        (hex(source), "written"),
    ):
        value.value = text
        write.click()
        assert said in message.value
    assert f"0x{source:08x}" in table.value


def _unpack(box: Any) -> tuple[Any, Any, Any, Any]:
    table, buttons, row, message = box.children
    return table, buttons, row.children, message


def test_memory_map(overlay: Any) -> None:
    view = widgets.memory_map(overlay, live=False)
    names = [r.name for r in view.ranges]
    assert names[0] == "DDR"
    assert {"axi_dma_0", "scale_stream_0"} <= set(names)
    assert re.search(r"0x40000000 - 0x4000ffff +64 KB +scale_stream_0", repr(view))
    assert "<svg" in view._repr_html_()
    _, choice, table = view.controls().children
    choice.value = "axi_dma_0"
    assert "S2MM_DMASR" in table.value
    choice.value = ""
    assert table.value == ""


def test_explore(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []

    def note(**values: Any) -> None:
        seen.append(values)

    widgets.explore(note, live=False, n=(0, 10), x=[1, 2, 4], y=((0.0, 1.0), 0.25))
    assert seen == [{"n": 5, "x": 2, "y": 0.25}]
    shown: list[Any] = []
    import IPython.display

    monkeypatch.setattr(IPython.display, "display", shown.append)
    widgets.explore(note, live=True, n=(0, 10, 2), x=[1, 2, 4])
    sliders = shown[0].children[:-1]
    sliders[0].value = 8
    sliders[1].value = 4
    assert seen[-2:] == [{"n": 8, "x": 2}, {"n": 8, "x": 4}]
    for bad in ({}, {"n": 3}, {"n": (5, 1)}, {"n": []}, {"n": ((1, 3), 9)}, {"n": (0, 9, 0)}):
        with pytest.raises(ValueError, match="control"):
            widgets.explore(note, live=False, **bad)
