"""Timelines: spans from threads and from models, and their chart."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from pynq_torch import plot
from pynq_torch.profiler.timeline import Timeline
from pynq_torch.timing import Duration


@pytest.fixture
def axes() -> Iterator[Any]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield plt.subplots()[1]
    plt.close("all")


def _model(seconds: float, label: str = "") -> Duration:
    return Duration(seconds, "model", label, clock_hz=1e8)


def test_spans_of_several_threads_are_kept_in_order() -> None:
    timeline = Timeline(on="cpu")
    inside = threading.Barrier(2)

    def work(lane: str) -> None:
        with timeline.span(lane, "both"):
            inside.wait(timeout=10)

    threads = [threading.Thread(target=work, args=(lane,)) for lane in ("b", "a")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, second = timeline.spans
    assert first.begin_s == 0
    assert second.begin_s < first.end_s  # each waited for the other: they overlap
    assert timeline.lanes == ("a", "b")
    assert timeline.seconds == max(first.end_s, second.end_s)
    assert timeline.busy(first.lane) == first.seconds
    assert "measured" in timeline.provenance


def test_a_span_that_ends_in_an_error_is_kept() -> None:
    timeline = Timeline(on="cpu")
    with pytest.raises(ZeroDivisionError), timeline.span("a"):
        raise ZeroDivisionError
    assert len(timeline.spans) == 1


def test_modelled_work_follows_without_a_pause() -> None:
    timeline = Timeline.modelled({"x": [_model(1, "p"), _model(2, "q")], "y": [_model(4)]})
    assert [(s.lane, s.label, s.begin_s, s.end_s) for s in timeline.spans] == [
        ("x", "p", 0, 1),
        ("y", "", 0, 4),
        ("x", "q", 1, 3),
    ]
    assert timeline.seconds == 4
    assert timeline.provenance == "model (at 100 MHz)"


def test_a_modelled_timeline_takes_one_model_only() -> None:
    measured = Duration(1, "measured", where="csim on this PC")
    for work in ({}, {"x": [measured]}, {"x": [_model(1)], "y": [measured]}):
        with pytest.raises(ValueError, match="one model at one clock"):
            Timeline.modelled(work)


def test_lanes_of_a_model_begin_when_it_says() -> None:
    work = {"load": [_model(3)], "add": [_model(1, "p"), _model(2, "q")]}
    spans = Timeline.modelled(work, {"add": 0.5}).spans
    assert [(s.lane, s.begin_s, s.end_s) for s in spans] == [
        ("load", 0.0, 3.0),
        ("add", 0.5, 1.5),
        ("add", 1.5, 3.5),
    ]
    with pytest.raises(ValueError, match="begins_s names store; expected lanes of work: load, add"):
        Timeline.modelled(work, {"store": 1.0})


def test_the_chart_names_lanes_labels_and_provenance(axes: Any) -> None:
    work = Timeline.modelled({"gemm_0": [_model(1e-3, "rows 0 to 9")], "gemm_1": [_model(2e-3)]})
    ax = plot.timeline(work, title="two", ax=axes)
    shown = [t.get_text() for t in (*ax.texts, *ax.get_yticklabels(), ax.xaxis.label, ax.title)]
    assert shown == ["rows 0 to 9", "", "gemm_0", "gemm_1", "time / ms\nmodel (at 100 MHz)", "two"]
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.timeline(Timeline(on="cpu"))


def test_what_is_left_of_a_duration() -> None:
    whole = Duration(3.0, "measured", "run", "csim on this PC", 7, low=2.0, high=4.0)
    left = whole.less(Duration(1.0, "measured", "host", "csim on this PC", 7, part="host"))
    assert (left.seconds, left.label, left.part, left.high) == (2.0, "run", "total", None)
    lost = left.less(whole)
    assert lost.seconds == 0.0
    assert lost.provenance == "measured (csim on this PC, a difference lost in noise, median of 7)"
    with pytest.raises(ValueError, match=r"model \(at 100 MHz\) cannot be taken off measured"):
        whole.less(_model(1.0))


def test_host_units_and_dma_channels_are_observed(axes: Any) -> None:
    import torch

    import pynq_torch
    from pynq_torch import buffers, events

    board = pynq_torch.use_board("csim")
    try:
        overlay = pynq_torch.load("stream")
        x, y = (buffers.empty_tensor((1000,)) for _ in range(2))
        x.copy_(torch.arange(1000.0))

        def run() -> None:
            started = overlay.scale_stream.start(gain=2.0, offset=1.0)
            pynq_torch.transfer(overlay.axi_dma_0, send=x, recv=y)
            started.wait(10)

        work = Timeline.observed(run)
        assert torch.equal(y, 2 * x + 1)
        assert work.lanes == ("axi_dma_0.recv", "axi_dma_0.send", "host", "scale_stream_0")
        by_lane = {lane: [s for s in work.spans if s.lane == lane] for lane in work.lanes}
        (unit,) = by_lane["scale_stream_0"]
        (send,) = by_lane["axi_dma_0.send"]
        (receive,) = by_lane["axi_dma_0.recv"]
        # The unit is started first, the receiving side is armed before the sending one.
        assert unit.begin_s < receive.begin_s < send.begin_s < send.end_s <= unit.end_s
        for host in by_lane["host"]:
            others = (unit, send, receive)
            assert all(host.end_s <= s.begin_s or host.begin_s >= s.end_s for s in others)
        chart = plot.timeline(work, ax=axes)
        assert "csim on this PC" in chart.get_xlabel()
        assert not events.transfers
        with pytest.raises(ZeroDivisionError):
            Timeline.observed(lambda: 1 / 0)
        assert not events.transfers
    finally:
        board.close()


def test_units_side_by_side_are_observed() -> None:
    import torch

    import pynq_torch

    board = pynq_torch.use_board("csim")
    try:
        first, second = pynq_torch.load("ladder_3").kernels.of("vadd_3")
        a = torch.ones(200_000)
        work = Timeline.observed(lambda: first(a, a, helpers=[second]))
        one, two = (next(s for s in work.spans if s.lane == unit.cu) for unit in (first, second))
        assert max(one.begin_s, two.begin_s) < min(one.end_s, two.end_s)
        assert {s.label for s in (one, two)} == {"vadd_3"}
    finally:
        board.close()
