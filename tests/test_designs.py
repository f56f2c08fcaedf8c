"""Designs of one function side by side: the table, the best, the diffs."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pynq_torch.errors import KernelError
from pynq_torch.lessons import designs
from pynq_torch.lessons.designs import Design
from pynq_torch.models import evidence
from pynq_torch.models.pynq_z2 import DDR_BYTES_PER_SECOND
from pynq_torch.timing import Duration

N = 1 << 20
HW = Path(__file__).parents[1] / "hw"


def test_a_ladder_has_the_units_of_its_overlays() -> None:
    rungs = designs.ladder("vadd")
    assert [d.label for d in rungs] == ["vadd_1", "vadd_2", "vadd_3 x2", "vadd_4"]
    assert [d.overlay for d in designs.ladder("dot")] == [f"ladder_{i}" for i in (1, 2, 3, 4)]
    with pytest.raises(KernelError, match="no ladder of 'gemm'; there are vadd, dot"):
        designs.ladder("gemm")


def test_units_share_the_work_and_ddr() -> None:
    one, two = Design("vadd_3", "x"), Design("vadd_3", "x", 2)
    # 12 bytes a cycle fit, 24 do not: two units are as fast as DDR, not twice as fast.
    assert one.bandwidth_share(N) == pytest.approx(12 / 18.27, abs=0.001)
    assert two.bandwidth_share(N) == pytest.approx(1, abs=0.001)
    assert two.bandwidth_share(N) <= 1
    assert two.resources.used == {k: 2 * v for k, v in one.resources.used.items()}
    # dot leaves DDR idle: there the second unit halves the time.
    slow, fast = (Design("dot_3", "x", units).duration(N) for units in (1, 2))
    assert slow.seconds / fast.seconds == pytest.approx(2, abs=0.01)
    assert fast.provenance == "model (at 100 MHz)"
    # A short vector stays with one unit.
    assert two.duration(100).seconds >= one.duration(100).seconds


def test_the_table_of_the_ladder() -> None:
    rungs = designs.ladder("vadd")
    table = designs.compare(rungs, N)
    rows = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert [rows[d.label]["II"] for d in rungs] == ["8", "1", "1", "1"]
    two = rows["vadd_2"]
    assert int(two["latency / cycles"]) == N + 90
    # The function of a tile is inlined, and all tiles of this length are full.
    one = [int(rows["vadd_1"][f"{word} / cycles"]) for word in ("latency", "estimate")]
    assert abs(one[0] - one[1]) <= 0.01 * one[0]
    assert N < int(two["estimate / cycles"]) < N + 90
    assert N / 2 < int(rows["vadd_3 x2"]["estimate / cycles"]) < N / 2 + 90
    # Throughput = 1 / (clock x cycles), the clock being a period of 10 ns.
    assert two["throughput"] == f"{1 / (10e-9 * (N + 90)):.0f} / s"
    assert two["of DDR"] == "66%"
    assert [row[-1] for row in table.rows] == ["", "", "", "best"]
    assert rows["vadd_4"]["kind"] == "model"
    four = evidence.resources("vadd_4")
    assert four is not None
    assert [rows["vadd_4"][k] for k in ("BRAM_18K", "DSP", "LUT", "FF")] == [
        str(n) for n in (four.bram_18k, four.dsp, four.lut, four.ff)
    ]


def test_of_equally_fast_designs_the_smaller_is_the_best() -> None:
    three, four = designs.ladder("vadd")[2:]
    assert three.duration(N).seconds == pytest.approx(four.duration(N).seconds, rel=0.01)
    assert three.resources.lut > four.resources.lut
    assert designs.best([three, four], N) == four
    assert designs.best([three], N) == three


def test_better_evidence_is_what_the_table_shows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(HW / "kernels" / "vadd_2", tmp_path / "vadd_2")
    monkeypatch.setenv("PYNQ_TORCH_KERNELS", str(tmp_path))
    evidence.record("vadd_2", Duration(2e-2, "cycles", clock_hz=1e8), n=N)
    (row,) = designs.compare([Design("vadd_2", "ladder_2")], N).rows
    assert "cycles, area model" in row
    assert row[2] == "2000000"


def test_a_point_has_what_the_function_does() -> None:
    add, dot = designs.ladder("vadd")[3].point(N), designs.ladder("dot")[3].point(N)
    assert (add.operations, add.nbytes) == (N, 12 * N)
    assert (dot.operations, dot.nbytes) == (2 * N, 8 * N)
    assert dot.bytes_per_second < DDR_BYTES_PER_SECOND


def test_a_diff_of_sources_leaves_names_out() -> None:
    diff = designs.source_diff("vadd_2", "vadd_3", context=0)
    changed = [line for line in diff.lines if line[0] in "+-"]
    assert len(changed) == 4  # the sentence on top, and the bundle of c
    assert sum("bundle=gmem2" in line for line in changed) == 1
    assert not any("vadd_2" in line or "vadd_3" in line for line in changed)
    html = diff._repr_html_()
    assert html.count("<div") == 1 + len(diff.lines)
    assert "&lt;" in designs.source_diff("vadd_1", "vadd_2")._repr_html_()
    assert str(designs.source_diff("vadd_2", "vadd_2")) == ""


def test_a_diff_of_overlays() -> None:
    diff = str(designs.overlay_diff("ladder_2", "ladder_3"))
    assert "+[instances.vadd_3_1]" in diff
    with pytest.raises(KernelError, match="ladder_9 is no overlay"):
        designs.overlay_diff("ladder_1", "ladder_9")


def test_an_interface_as_text() -> None:
    text = designs.interface("vadd_4")
    assert "m_axi_gmem0: 64 bits wide" in text
    assert "for a, c" in text
