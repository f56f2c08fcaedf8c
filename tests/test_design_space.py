"""Sizes of the gemm's RTL: which make sense, what was counted of them, which are worth choosing."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pynq_torch.lessons import design_space
from pynq_torch.lessons.design_space import Design, Result
from pynq_torch.models import evidence, rtl_resources
from pynq_torch.models.hls_resources import Resources


@pytest.fixture
def _figures() -> Iterator[None]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


def _result(share: float, cycles: int, bits: int = 64) -> Result:
    used = Resources(0, 0, 0, round(53_200 * share), "yosys", "yosys 1, synth")
    return Result(Design(8, 8, bits), {256: cycles}, used)


def test_parameters_follow_the_array() -> None:
    assert Design(16, 32).parameters == {
        "ROWS": 16, "COLS": 32, "DSP_ROWS": 12, "DATA_WIDTH": 64,
    }  # fmt: skip
    assert Design(4, 8, 32).parameters["DSP_ROWS"] == 4
    assert (Design(8, 16).macs, str(Design(8, 16, 32))) == (128, "8 x 16, 32 bit")


@pytest.mark.parametrize("values", [(5, 8, 64), (4, 4, 64), (16, 64, 64), (8, 8, 128)])
def test_sizes_that_cannot_be_built_are_refused(values: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="cannot be built; expected rows 4, 8 or 16"):
        Design(*values)


def test_the_shipped_design_is_the_rtls_own(tmp_path: Path) -> None:
    """Its parameters are the defaults of gemm.sv, so the kernel's own count is its count."""
    design_space._variant(tmp_path, design_space.SHIPPED)
    for path in (design_space._KERNEL / "rtl").glob("*.sv"):
        copy = tmp_path / "hw" / "kernels" / "gemm" / "rtl" / path.name
        assert copy.read_text() == path.read_text()


def test_a_variant_has_its_parameters_and_ports(tmp_path: Path) -> None:
    bit = design_space._variant(tmp_path, Design(4, 8, 32))
    text = (tmp_path / "hw" / "kernels" / "gemm" / "rtl" / "gemm.sv").read_text()
    for said in ("ROWS        = 4,", "COLS        = 8,", "DSP_ROWS    = 4,", "DATA_WIDTH  = 32,"):
        assert said in text
    assert 'C_M_AXI_GMEM0_DATA_WIDTH" VALUE="32"' in bit.with_suffix(".hwh").read_text()


def test_the_front_is_what_no_other_beats() -> None:
    small, middle, large = _result(0.2, 900), _result(0.4, 500), _result(0.8, 300)
    beaten, slow = _result(0.5, 600, 32), _result(0.9, 300)
    assert design_space.pareto([beaten, large, slow, small, middle], 256) == (small, middle, large)


# ---- what is committed ---------------------------------------------------------------------------


def test_the_committed_results_are_of_this_rtl() -> None:
    assert design_space.stale() == [], (
        "run: python -c 'from pynq_torch.lessons import design_space as d; d.record()'"
    )
    found = {result.design: result for result in design_space.results()}
    assert set(found) <= set(design_space.DESIGNS)
    shipped = found[design_space.SHIPPED]
    own = evidence.resources("gemm")
    assert own is not None
    assert shipped.resources.used == own.used
    for result in found.values():
        assert result.resources.kind == "yosys"
        for size, cycles in result.cycles.items():
            assert cycles > size**3 / result.design.macs  # never more than the peak


def test_a_change_of_the_rtl_makes_them_stale(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(design_space._KERNEL / "rtl", tmp_path / "rtl")
    monkeypatch.setattr(design_space, "_KERNEL", tmp_path)
    with (tmp_path / "rtl" / "gemm.sv").open("a") as file:
        file.write("// changed\n")
    assert "gemm.sv" in design_space.stale()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_design_simulates_in_the_cycles_that_are_committed() -> None:
    (result,) = (r for r in design_space.results() if r.design == Design(4, 8))
    assert design_space.simulate(Design(4, 8), 64)[64] == result.cycles[64]


# ---- chart ---------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_figures")
def test_the_chart_tells_kinds_and_front() -> None:
    from pynq_torch.plot.design import designs

    found = [_result(0.2, 9000), _result(0.4, 12_000, 32), _result(0.8, 3000)]
    chart = designs(found, budget=0.5)
    assert [row[-1] for row in chart.table.rows] == ["yes", "no", "yes"]
    assert chart.table.rows[0][:4] == ["8 x 8, 64 bit", "64", "9000", f"{256**3 / 9000:.1f}"]
    labels = [text.get_text() for text in chart.get_legend().get_texts()]
    assert "50% of the part" in labels
    assert "ports of 32 bit" in labels
    assert "counted in RTL" in chart.get_xlabel()
    assert "yosys 1" in chart.get_xlabel()
    with pytest.raises(ValueError, match="nothing to draw"):
        designs([])


def test_the_file_is_json_with_its_sources() -> None:
    data = json.loads(design_space._FILE.read_text())
    files = rtl_resources.rtl_sources(design_space._KERNEL / "rtl")
    assert set(data["sources"]) == {path.name for path in files}
    assert data["memory"] == "pynq-z2"
