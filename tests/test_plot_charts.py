"""Charts carry their data: rooflines, errors, tables behind charts, files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pynq_torch import plot
from pynq_torch.models import pynq_z2
from pynq_torch.models.pynq_z2 import Ports, Roof
from pynq_torch.plot import Chart, Point, ProvenanceError, Table
from pynq_torch.plot.errors import ulps
from pynq_torch.profiler.timeline import Timeline
from pynq_torch.timing import Duration


@pytest.fixture(autouse=True)
def _figures() -> Iterator[None]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def model(seconds: float, label: str = "") -> Duration:
    return Duration(seconds, "model", label, clock_hz=1e8)


def texts(chart: Chart) -> list[str]:
    legend = chart.get_legend()
    shown = [*chart.texts, chart.title, chart.xaxis.label, chart.yaxis.label]
    shown += legend.get_texts() if legend is not None else []
    return [t.get_text() for t in shown if t.get_text()]


# ---- roofline ------------------------------------------------------------------------------------

POINTS = (
    Point(model(1e-3, "slow"), 1e5, 1.2e6),
    Point(Duration(1e-3, "cycles", "counted", clock_hz=1e8), 4e5, 1.2e6),
    Point(Duration(2e-3, "measured", "timed", "PL of the board", clock_hz=1e8), 1e6, 1.2e6),
)


def test_a_roofline_says_what_each_point_is() -> None:
    ports = Ports(width_bits=32, outstanding=8)
    roofs = (*pynq_z2.memory_roofs(("one port", ports)), pynq_z2.compute_roof(4, label="4 a cycle"))
    chart = plot.roofline(POINTS, roofs, title="three")
    shown = texts(chart)
    assert {"slow", "counted", "timed", "one port", "DDR", "4 a cycle", "three"} <= set(shown)
    assert {"model", "cycles", "measured"} <= set(shown)
    assert any("UG585" in text for text in shown)
    markers = [line.get_marker() for line in chart.lines if len(line.get_xdata()) == 1]
    assert markers == ["o", "s", "^"]
    rows = {row[0]: row for row in chart.table.rows}
    assert float(rows["slow"][2]) == 1e8
    assert float(rows["slow"][1]) == pytest.approx(1 / 12, rel=1e-3)
    # 1.83 GB/s at 1/12 operation a byte; a roof of some designs only bounds nobody else.
    assert float(rows["slow"][3]) == pytest.approx(1.827e9 / 12, rel=1e-3)
    assert rows["slow"][4] == f"{1e8 * 12 / 1.827e9:.1%}"
    assert [rows[name][5] for name in ("slow", "counted", "timed")] == [
        "model", "cycles", "measured",
    ]  # fmt: skip
    # At 1/3 operation a byte the array of 4 a cycle is not what limits, at 1 it is.
    assert float(rows["timed"][3]) == 4e8
    assert rows["DDR"][2] == "1.827e+09 bytes / s"


def test_points_on_each_other_share_a_label() -> None:
    chart = plot.roofline([POINTS[0], Point(model(1.01e-3, "same"), 1e5, 1.2e6)])
    assert "slow, same" in texts(chart)


def test_labels_of_neighbours_do_not_cover_each_other() -> None:
    near = [(135, 1.36), (138, 1.2), (92, 1.15), (80, 0.96), (75, 0.77), (95, 0.92)]
    chart = plot.roofline([Point(model(1.0, str(n)), p * 1e9, p * 1e9 / i)
                           for n, (i, p) in enumerate(near)])  # fmt: skip
    chart.figure.canvas.draw()
    boxes = [t.get_window_extent() for t in chart.texts if t.get_text().isdigit()]
    assert len(boxes) == 6
    assert not any(a.overlaps(b) for k, a in enumerate(boxes) for b in boxes[:k])


def test_the_clock_of_a_pc_has_no_place_below_the_roofs_of_the_board() -> None:
    here = Duration(1.0, "measured", "csim", "csim on this PC")
    with pytest.raises(ProvenanceError, match="the roofs are the board's"):
        plot.roofline([Point(here, 1, 1)])
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.roofline([])
    with pytest.raises(ValueError, match="hard roof"):
        plot.roofline(POINTS, [Roof("x", bytes_per_second=1.0, hard=False)])
    with pytest.raises(ValueError, match="0 operations"):
        Point(model(1.0), 0, 1)


# ---- errors --------------------------------------------------------------------------------------


def test_distances_in_units_of_the_last_place() -> None:
    one = np.float32(1)
    above = np.nextafter(one, np.float32(2))
    below = np.nextafter(one, np.float32(0))
    nan, inf = np.nan, np.inf
    found = np.array([one, above, below, nan, inf, nan, 1.0, -inf, 0.0], np.float32)
    truth = np.array([one, one, one, nan, inf, 1.0, nan, inf, -0.0], np.float32)
    assert ulps(found, truth).tolist() == [0, 1, 0.5, 0, 0, inf, inf, inf, 0]
    with pytest.raises(ValueError, match=r"shape \(2,\)"):
        ulps(np.zeros(2), np.zeros(3))


@settings(max_examples=40)
@given(st.floats(width=32, allow_nan=False, allow_infinity=False), st.integers(0, 5))
@example(float(np.finfo(np.float32).max), 1)
def test_steps_of_float32_are_counted(value: float, steps: int) -> None:
    start = np.float32(value)
    end = start
    with np.errstate(over="ignore"):  # beyond the largest number
        for _ in range(steps):
            end = np.nextafter(end, np.float32(np.inf))
        same_gap = np.spacing(np.abs(end)) == np.spacing(np.abs(start))
    if np.isfinite(end) and same_gap:
        assert ulps(np.array([end]), np.array([start]))[0] == steps


def test_errors_of_several_results() -> None:
    x = torch.linspace(-3, 3, 501)
    exact = x.double().tanh()
    off = exact.float().clone()
    off[7] += 0.5
    chart = plot.error(
        {"float32": exact.float(), "wrong": off}, exact, x=x, xlabel="x", bound=1, title="tanh",
        where="CPU of this PC",
    )  # fmt: skip
    rows = {row[0]: row for row in chart.table.rows}
    assert float(rows["float32"][2]) <= 0.5
    assert float(rows["wrong"][2]) > 1e6
    assert float(rows["wrong"][6]) == pytest.approx(float(x[7]))
    assert {"float32", "wrong", "bound 1", "tanh", "x\nCPU of this PC"} <= set(texts(chart))
    assert len(chart.figure.axes) == 2
    absolute = plot.error({"wrong": off}, exact, unit="absolute")
    assert float(absolute.table.rows[0][2]) == pytest.approx(0.5, rel=1e-3)
    same = plot.error({"same": exact}, exact)
    assert same.table.rows[0][5] == "501 of 501"
    with pytest.raises(ValueError, match="unit is 'percent'"):
        plot.error({"a": x}, x, unit="percent")
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.error({}, x)


# ---- the data behind a chart ---------------------------------------------------------------------


def test_every_chart_has_its_data() -> None:
    slow, fast = model(2e-3, "slow"), model(1e-3, "fast")
    bars = plot.times([slow, [fast, model(5e-4, "rest")]])
    assert [row[:4] for row in bars.table.rows] == [
        ["0", "slow", "total", "0.002"],
        ["1", "fast", "total", "0.001"],
        ["1", "rest", "total", "0.0005"],
    ]
    ratio = plot.speedup(slow, [fast])
    assert [row[2] for row in ratio.table.rows] == ["1.0", "2.0"]
    lines = plot.sweep([1, 2], {"a": [slow, fast]}, xlabel="n")
    assert lines.table.header[1] == "n"
    assert [row[1:4] for row in lines.table.rows] == [
        ["1", "0.002", "model"], ["2", "0.001", "model"],
    ]  # fmt: skip
    gantt = plot.timeline(Timeline.modelled({"cu": [slow], "DMA": [fast]}))
    assert {row[0] for row in gantt.table.rows} == {"cu", "DMA"}
    assert all("model (at 100 MHz)" in row for row in gantt.table.rows)
    for chart in (bars, ratio, lines, gantt):
        assert isinstance(chart, Chart)
        assert chart.figure is chart.axes.figure
        with pytest.raises(AttributeError):
            _ = chart.no_such_thing


def test_a_logarithmic_axis_shows_every_bar() -> None:
    long, short = model(0.5, "long"), Duration(2e-3, "measured", "short", "PC", 3, None, 1.1e-3)
    chart = plot.times([long, short], log=True)
    assert chart.get_ylim()[0] == pytest.approx(0.1)  # ms: the fastest took 1.1
    near = plot.times([model(0.087), replace(short, seconds=0.133, low=0.12, high=0.155)], log=True)
    near.figure.canvas.draw()
    frame = near.axes.get_window_extent()
    assert all(t.get_window_extent().y1 < frame.y1 for t in near.texts if "ms" in t.get_text())
    with pytest.raises(ValueError, match="a bar of 0 s has no place"):
        plot.times([long, model(0.0)], log=True)


def test_a_chart_is_drawn_into_another() -> None:
    chart = plot.times([model(1.0, "a")])
    assert plot.times([model(1.0, "b")], ax=chart).axes is chart.axes


def test_charts_are_saved_with_their_data(tmp_path: Path) -> None:
    def save(name: str) -> tuple[Path, ...]:
        chart = plot.times([model(2e-3, "a, b"), model(1e-3, "µ")], title="times")
        return plot.save(chart, tmp_path / "new" / name)

    png, svg, data = save("one.two")
    assert [path.name for path in (png, svg, data)] == ["one.two.png", "one.two.svg", "one.two.csv"]
    assert png.read_bytes().startswith(b"\x89PNG")
    assert "model (at 100 MHz)" in svg.read_text()  # text stays text
    rows = list(csv.DictReader(io.StringIO(data.read_text())))
    assert [(row["label"], row["kind"]) for row in rows] == [("a, b", "model"), ("µ", "model")]
    again = save("again")
    assert again[1].read_bytes() == svg.read_bytes()
    assert again[2].read_bytes() == data.read_bytes()


def test_fonts_are_for_a_lecture_room() -> None:
    chart = plot.roofline(POINTS)
    sizes = [t.get_fontsize() for t in (*chart.texts, chart.title, chart.xaxis.label)]
    assert min(sizes) >= 11


def test_a_table_as_csv() -> None:
    assert Table(["a", "b"], [[1, 'x"y'], [2, "z,w"]]).csv() == 'a,b\n1,"x""y"\n2,"z,w"\n'
