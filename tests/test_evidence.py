"""What is known of a kernel: the model, and what replaces it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from pynq_torch.errors import InterfaceError, KernelError
from pynq_torch.hls.design.build import overlay_names
from pynq_torch.kernels import library
from pynq_torch.models import evidence
from pynq_torch.models.hls_resources import AVAILABLE, COMPONENTS, CONTROL, estimate, itemised
from pynq_torch.timing import Duration

VADD = Path(__file__).parents[1] / "hw" / "kernels" / "vadd"
REPORT = """<profile>
<ReportVersion><Version>2023.2</Version></ReportVersion>
<UserAssignments><TopModelName>vadd</TopModelName><Part>xc7z020-clg400-1</Part>
<TargetClockPeriod>10.00</TargetClockPeriod><ClockUncertainty>2.70</ClockUncertainty>
</UserAssignments>
<PerformanceEstimates><SummaryOfOverallLatency>
<Best-caseLatency>{best}</Best-caseLatency><Worst-caseLatency>{worst}</Worst-caseLatency>
</SummaryOfOverallLatency></PerformanceEstimates>
<AreaEstimates><Resources><BRAM_18K>30</BRAM_18K><DSP>2</DSP><FF>4001</FF><LUT>5002</LUT></Resources>
<AvailableResources><BRAM_18K>280</BRAM_18K></AvailableResources></AreaEstimates>
</profile>"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel path of its own, with vadd on it, of which nothing is known but its model."""
    nothing = shutil.ignore_patterns("rtl", evidence.MEASUREMENTS)
    shutil.copytree(VADD, tmp_path / "vadd", ignore=nothing)
    monkeypatch.setenv("PYNQ_TORCH_KERNELS", str(tmp_path))
    return tmp_path / "vadd"


# ---- resources -----------------------------------------------------------------------------------


def test_components_add_up() -> None:
    found = estimate({"fadd": 2, "registers": 7, "buffers": [[8192, 2]], "lut": 10, "ff": 5})
    fadd, word = COMPONENTS["fadd"], COMPONENTS["registers"]
    assert found.dsp == 4
    assert found.ff == 2 * fadd.ff + 7 * word.ff + CONTROL.ff + 5
    assert found.lut == 2 * fadd.lut + 7 * word.lut + CONTROL.lut + 10
    assert found.bram_18k == 4  # 4096 bytes a bank, 2048 a BRAM of 18 Kbit
    assert found.kind == "model"
    assert found.times(3).used == {name: 3 * count for name, count in found.used.items()}
    assert found.utilisation()["DSP"] == 4 / AVAILABLE["DSP"]


def test_control_interfaces_cost_what_reports_of_other_kernels_show() -> None:
    """Register words, FF and LUT of control_s_axi modules in public csynth reports (xc7z020)."""
    for words, ff, lut in ((0, 36, 40), (1, 74, 104), (2, 113, 170), (5, 214, 360), (8, 316, 552)):
        modelled = CONTROL.lut + words * COMPONENTS["registers"].lut
        assert modelled == pytest.approx(lut, rel=0.02), words
        assert CONTROL.ff + words * COMPONENTS["registers"].ff == pytest.approx(ff, rel=0.09)


def test_memories_are_brams_or_luts_by_their_size() -> None:
    assert estimate({"buffers": [[2048, 1]]}).bram_18k == 1
    assert estimate({"buffers": [[2049, 1]]}).bram_18k == 2
    assert estimate({"buffers": [[2048, 16]]}) == estimate({"buffers": [[128, 1]] * 16})
    small = estimate({"buffers": [[128, 1]]})
    assert (small.bram_18k, small.lut) == (0, 21)  # 1024 bits, 16 words of 64 in fours of 3
    names = [row[0] for row in itemised({"fmul": 1, "registers": 1, "buffers": [[64, 2]]})]
    assert names == ["fmul", "registers", "buffer of 64 bytes in 2 banks", "s_axilite slave"]


def test_every_component_has_a_source() -> None:
    assert all(component.source for component in COMPONENTS.values())
    assert COMPONENTS["fadd"].seen
    assert "estimate" in COMPONENTS["fexp"].source


@pytest.mark.parametrize(
    ("components", "said"),
    [
        ({"adder": 1}, "'adder' is no component; there are fadd"),
        ({"fadd": 1.5}, "fadd is 1.5"),
        ({"fadd": True}, "fadd is True"),
        ({"buffers": 3}, "buffers is 3"),
        ({"buffers": [[1, 2, 3]]}, r"a buffer is [1, 2, 3]"),
    ],
)
def test_a_description_with_wrong_components(
    folder: Path, components: dict[str, object], said: str
) -> None:
    path = folder / "description.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"resources": components}))
    with pytest.raises(InterfaceError) as caught:
        evidence.kernel("vadd")
    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_kernels_of_the_project_fit_the_part() -> None:
    stated = {name: evidence.resources(name) for name in evidence.kernel_names()}
    assert {"vadd", "gemm", "matrix_mult", "scale_stream"} <= stated.keys()
    for name, found in stated.items():
        if found is not None:
            for what, share in found.utilisation().items():
                # A tenth is left to the interconnect, which takes no DSPs.
                assert 0 <= share <= (1.0 if "dsp" in what.lower() else 0.9), (name, what)
    gemm = stated["gemm"]
    assert gemm is not None
    # Its RTL: 12 rows of 32 columns, two products a DSP; panels of 32 KB of a and of b, both twice.
    assert gemm.dsp >= 12 * 32 // 2
    assert gemm.bram_18k >= 4 * 32768 * 8 // 18432


def test_a_synthesis_report_replaces_the_model(folder: Path) -> None:
    model = evidence.resources("vadd")
    assert model is not None
    assert model.kind == "model"
    (folder / "csynth.xml").write_text(REPORT.format(best=1, worst=9))
    found = evidence.resources("vadd")
    assert found is not None
    assert found.used == {"BRAM_18K": 30, "DSP": 2, "FF": 4001, "LUT": 5002}
    assert (found.kind, found.source) == ("csynth", "csynth.xml, 2023.2")


def test_a_kernel_without_components_has_no_resources(folder: Path) -> None:
    path = folder / "description.json"
    data = json.loads(path.read_text())
    del data["resources"]
    path.write_text(json.dumps(data))
    assert evidence.resources("vadd") is None


# ---- latency -------------------------------------------------------------------------------------


def test_the_best_evidence_wins(folder: Path) -> None:
    model = evidence.latency("vadd", 1e8, estimated=False, n=1000, other=3)
    assert (model.kind, model.label, model.part) == ("model", "vadd", "compute")
    assert model.seconds == (1000 + 50 + 2 * 1000 + 60) / 1e8
    estimate = evidence.latency("vadd", 1e8, n=1000, other=3)
    assert estimate.provenance == "estimate (memory never waits, at 100 MHz)"
    assert 0.9 * model.seconds < estimate.seconds < 1.1 * model.seconds
    assert list(evidence.latencies("vadd", 1e8, n=1000)) == ["estimate", "model"]
    # A range is no latency for these arguments; one number is the schedule.
    (folder / "csynth.xml").write_text(REPORT.format(best=1, worst=9))
    assert evidence.latency("vadd", 1e8, n=1000) == estimate
    (folder / "csynth.xml").write_text(REPORT.format(best=1234, worst=1234))
    scheduled = evidence.latency("vadd", 1e8, n=1000)
    assert scheduled.seconds == 1234e-8
    assert scheduled.provenance == "model (csynth.xml, 2023.2, at 100 MHz)"
    counted = Duration(1500e-8, "cycles", clock_hz=1e8)
    evidence.record("vadd", counted, n=1000)
    kinds = ["csynth", "cycles", "estimate", "model"]
    assert list(evidence.latencies("vadd", 1e8, n=1000)) == kinds
    assert evidence.latency("vadd", 1e8, n=1000) == scheduled
    (folder / "csynth.xml").unlink()
    assert evidence.latency("vadd", 2e8, n=1000).seconds == 1500 / 2e8
    assert evidence.latency("vadd", 1e8, n=1000).provenance == "cycles counted in RTL (at 100 MHz)"
    assert evidence.latency("vadd", 1e8, n=1001).kind == "estimate"
    on_board = Duration(2e-5, "measured", "", "PL of the board", 7, clock_hz=1e8)
    evidence.record("vadd", on_board, n=1000)
    measured = evidence.latency("vadd", 1e8, n=1000, label="rung")
    assert (measured.kind, measured.seconds, measured.label) == ("measured", 2e-5, "rung")
    assert "PL of the board, median of 7" in measured.provenance
    # At another clock that wall clock means nothing; the cycles do.
    assert evidence.latency("vadd", 2e8, n=1000).kind == "cycles"


@pytest.mark.usefixtures("folder")
def test_a_routed_clock_replaces_the_assumed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence, "BITSTREAMS", tmp_path / "bitstreams")
    evidence.record("vadd", Duration(1500e-8, "cycles", clock_hz=1e8), n=1000)
    # The first is a simulation image, which has no such entry; the last was made of the C++.
    for name, rtl, clock in (("a", None, 100), ("b", ["vadd"], 62.5), ("c", ["vadd"], 80),
                             ("d", [], 50)):  # fmt: skip
        manifest = {"overlay": name, "clock_mhz": clock, "kernels": {"vadd_0": "vadd"}}
        if rtl is not None:
            manifest |= {"rtl": rtl, "routed": {"by": "nextpnr-xilinx"}}
        (tmp_path / "bitstreams" / name).mkdir(parents=True)
        (tmp_path / "bitstreams" / name / "manifest.json").write_text(json.dumps(manifest))
        if name == "a":
            assert evidence.latency("vadd", 1e8, estimated=False, n=1000).kind == "cycles"
    routed = evidence.latency("vadd", 1e8, estimated=False, n=1000)
    assert (routed.kind, routed.seconds) == ("routed", 1500 / 62.5e6)
    whose = "b by nextpnr-xilinx, at 62.5 MHz"
    assert routed.provenance == f"routed: cycles counted in RTL ({whose})"
    assert evidence.latencies("vadd", 1e8, estimated=False, n=1000)["cycles"].seconds == 1500e-8
    with pytest.raises(ValueError, match="is no evidence"):
        evidence.record("vadd", routed, n=1000)


def test_an_estimate_counts_where_the_sizes_alone_decide_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = folder / "vadd.cpp"
    text = source.read_text()
    assert "i < count; ++i" in text
    source.write_text(text.replace("i < count; ++i", "i < count && a[i] != 0; ++i"))
    assert list(evidence.latencies("vadd", 1e8, n=1000)) == ["model"]
    source.write_text(text)
    assert evidence.latency("vadd", 1e8, n=1000).kind == "estimate"
    assert evidence.schedule("vadd", 1e8, n=1000).loops
    monkeypatch.setattr("shutil.which", lambda *_, **__: None)
    assert evidence.latency("vadd", 1e8, n=1000).kind == "model"
    with pytest.raises(KernelError, match="apt-get install clang-16"):
        evidence.schedule("vadd", 1e8, n=1000)


def test_recording_replaces_what_was_recorded(folder: Path) -> None:
    for seconds in (1e-5, 3e-5):
        path = evidence.record("vadd", Duration(seconds, "cycles", clock_hz=1e8), n=5)
    (entry,) = json.loads(path.read_text())
    assert entry["cycles"] == 3000


@pytest.mark.parametrize(
    "duration",
    [
        Duration(1.0, "model", clock_hz=1e8),
        Duration(1.0, "estimate", clock_hz=1e8),
        Duration(1.0, "measured", where="csim on this PC", clock_hz=1e8),
        Duration(1.0, "measured", where="PL of the board"),
    ],
)
def test_what_is_no_evidence_is_not_kept(folder: Path, duration: Duration) -> None:
    with pytest.raises(ValueError, match=r"no evidence|needs clock_hz"):
        evidence.record("vadd", duration, n=5)
    with pytest.raises(ValueError, match="found clock 100000000.0 and no sizes"):
        evidence.record("vadd", Duration(1.0, "cycles", clock_hz=1e8))
    assert not (folder / evidence.MEASUREMENTS).exists()


@pytest.mark.parametrize("text", ["{", "[3]", '[{"kind": "cycles", "sizes": {}}]'])
def test_measurements_that_are_none(folder: Path, text: str) -> None:
    (folder / evidence.MEASUREMENTS).write_text(text)
    with pytest.raises(InterfaceError, match="measurements.json"):
        evidence.latency("vadd", 1e8, n=1)


def test_an_unknown_kernel() -> None:
    with pytest.raises(KernelError, match=r"no kernel 'vsub' .*there are .*vadd"):
        evidence.kernel("vsub")


# ---- overlays ------------------------------------------------------------------------------------


@pytest.mark.parametrize("overlay", overlay_names())
def test_an_overlay_fits_the_part(overlay: str) -> None:
    most = max(library.overlay_resources(overlay).utilisation().values())
    assert most <= 1, f"{most:.0%} of the xc7z020"


def test_units_of_an_overlay_add_up() -> None:
    one = evidence.resources("vadd_3")
    other = evidence.resources("dot_3")
    assert one is not None
    assert other is not None
    found = library.overlay_resources("ladder_3")
    assert found.used == {key: 2 * (one.used[key] + other.used[key]) for key in one.used}
    assert (found.kind, found.source) == ("model", "kernels of overlay ladder_3")
    with pytest.raises(KernelError, match="no overlay 'nothing'"):
        library.overlay_resources("nothing")
