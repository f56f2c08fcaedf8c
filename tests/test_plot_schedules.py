"""The picture of a schedule: what is drawn, what is said, in SVG and in text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from pynq_torch import plot
from pynq_torch.hls.estimator import Estimate, LoopEstimate

LOOP = LoopEstimate(
    "dot_loop", "dot.cpp", 4, (4,), "dot", 1, (256, 256), 5, 1, (11, 11), (1285, 1285),
    "II=5: it waits for `a < b` of the iteration before",
)  # fmt: skip
ENDLESS = replace(LOOP, iteration_latency=(1, None))
ESTIMATE = Estimate("dot", "vitis", 10.0, "part", (1287, 1287), (1288, 1288), (LOOP,), {"DSP": 5})


def test_iterations_of_a_pipeline() -> None:
    shown = plot.schedule(ESTIMATE)
    assert [(bar.begin, bar.end) for bar in shown.bars] == [(5 * n, 5 * n + 11) for n in range(5)]
    assert shown.spans == (("II=5", 0, 5), ("depth 11", 0, 11))
    lines = str(shown).splitlines()
    assert lines[0] == "dot_loop, 256 iterations in 1,285 cycles, estimate"
    assert lines[2:4] == ["iteration 0  " + 11 * "█", "iteration 1       " + 11 * "░"]
    assert lines[-1] == LOOP.why


def test_the_svg_is_well_formed_and_says_what_it_shows(tmp_path: Path) -> None:
    shown = plot.schedule(ESTIMATE, "dot_loop", iterations=3, title="naive")
    root = ElementTree.fromstring(shown._repr_svg_())
    assert root.get("role") == "img"
    alt = root.get("aria-label") or ""
    assert alt.startswith("naive, 256 iterations in 1,285 cycles, estimate. Marked: II=5 from")
    assert alt.endswith("`a < b` of the iteration before")
    texts = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert {"iteration 0", "iteration 2", "II=5", "depth 11", LOOP.why} <= set(texts)
    assert "background:white" in (root.get("style") or "")  # readable on a dark page
    shown.save(tmp_path / "a.svg")
    assert (tmp_path / "a.svg").read_text(encoding="utf-8") == shown.svg


def test_a_loop_without_a_pipeline_and_one_that_nothing_limits() -> None:
    slow = plot.schedule(replace(ESTIMATE, loops=(replace(LOOP, ii=None, why=""),)))
    assert [bar.begin for bar in slow.bars] == [0, 11, 22, 33, 44]
    assert "begins when the one before it has ended" in str(slow)
    fast = plot.schedule(replace(ESTIMATE, loops=(replace(LOOP, ii=1, why="", trip_count=(2, 3)),)))
    assert [bar.begin for bar in fast.bars] == [0, 1, 2]
    assert "up to 3 iterations" in fast.title and "begins every cycle" in fast.caption


def test_the_innermost_loop_with_most_cycles_is_the_default() -> None:
    outer = replace(LOOP, name="rows", latency=(9999, 9999), ii=None)
    inner = replace(LOOP, name="cols", depth=2)
    other = replace(LOOP, name="init", latency=(20, 20))
    shown = plot.schedule(replace(ESTIMATE, loops=(outer, inner, other)))
    assert shown.title.startswith("cols,")


def test_processes_side_by_side() -> None:
    stages = (("load", 100), ("add", 500), ("store", 100))
    begins = (0, 3, 504)
    shown = plot.schedule(replace(ESTIMATE, stages=stages, begins=begins, interval=(501, 501)))
    assert [(bar.lane, bar.begin, bar.end) for bar in shown.bars] == [
        (0, 0, 100), (0, 501, 601), (1, 3, 503), (1, 504, 1004), (2, 504, 604), (2, 1005, 1105),
    ]  # fmt: skip
    assert {bar.lane for bar in shown.bars if bar.colour == "vermillion"} == {1}
    assert shown.spans == (("interval 501 cycles", 0, 501),)
    assert "add, sets the interval" in shown.caption


@pytest.mark.parametrize(
    ("estimate", "name", "count", "said"),
    [
        (ESTIMATE, "sum_loop", 5, "no loop 'sum_loop'; it has dot_loop"),
        (ESTIMATE, "", 0, "iterations=0"),
        (replace(ESTIMATE, loops=()), "", 5, "nothing to draw.*dot has none"),
        (replace(ESTIMATE, loops=(ENDLESS,)), "", 5, "TRIPCOUNT"),
        (replace(ESTIMATE, stages=(("load", None),)), "", 5, "how long load takes"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn(estimate: Estimate, name: str, count: int, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        plot.schedule(estimate, name, iterations=count)


def test_variants_of_a_kernel_and_those_that_none_beats() -> None:
    pytest.importorskip("matplotlib").use("Agg")

    def variant(cycles: int, dsp: int) -> Estimate:
        used = {"DSP": dsp, "BRAM_18K": 0}
        return replace(ESTIMATE, latency=(cycles, cycles), resources=used)

    found = {"slow": variant(900, 5), "good": variant(500, 5), "twin": variant(500, 5)}
    chart = plot.design.estimates(found | {"large": variant(100, 20), "near": variant(101, 20)})
    assert [row[7] for row in chart.table.rows] == ["", "yes", "yes", "yes", ""]
    assert chart.table.rows[0] == ["1", "slow", "5", "900", "9.0", "5", "0", "", "estimate"]
    assert {text.get_text() for text in chart.texts} == {"1", "2, 3", "4, 5"}
    plain = plot.design.variants(found)
    assert plain.header[-2:] == ["BRAM_18K", "kind"]
    assert plain.rows[0][:4] == ["1", "slow", "5", "900"]
    assert "estimate for part at 10 ns" in chart.get_xlabel()
    chart.figure.clear()
    with pytest.raises(ValueError, match="nothing to draw"):
        plot.design.estimates({})
    with pytest.raises(ValueError, match="of 'open' are not known"):
        plot.design.estimates({"open": replace(ESTIMATE, latency=(1, None))})
