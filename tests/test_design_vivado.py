"""The generated Tcl, run without Vivado, builds the design that the description says."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import tomllib
from test_design_image import real_image

from pynq_torch.board.rtl.grouping import group
from pynq_torch.board.rtl.lint import find_verilator
from pynq_torch.board.rtl.sources import RtlSource
from pynq_torch.board.rtl.verilate import elaborate, verilate
from pynq_torch.board.rtl.vivado_ip import write_ips, write_packaging
from pynq_torch.cli import main
from pynq_torch.hls.design.build import Generated, generate, make_design, overlay_names
from pynq_torch.paths import ROOT

RECORDER = Path(__file__).parent / "design_recorder.tcl"
TCLSH = shutil.which("tclsh")
needs_tclsh = pytest.mark.skipif(TCLSH is None, reason="tclsh is not installed")

pytestmark = pytest.mark.usefixtures("kernels_read_once")

OVERLAYS = overlay_names()


@pytest.fixture(scope="module")
def generated() -> dict[str, Generated]:
    return {name: generate(name) for name in OVERLAYS}


@dataclass
class Recorded:
    """What Vivado would have built."""

    part: str = ""
    cells: dict[str, str] = field(default_factory=dict)
    config: dict[str, dict[str, str]] = field(default_factory=dict)
    ports: dict[str, str] = field(default_factory=dict)
    buses: set[tuple[str, str]] = field(default_factory=set)
    nets: dict[str, set[str]] = field(default_factory=dict)
    segments: set[tuple[str, str, int, int]] = field(default_factory=set)
    rest: list[list[str]] = field(default_factory=list)


def record(tcl: str, folder: Path) -> Recorded:
    """Run the script under tclsh and rebuild the design from what it called."""
    script, log = folder / "design.tcl", folder / "record"
    script.write_text(tcl)
    assert TCLSH is not None
    subprocess.run(
        [TCLSH, RECORDER, script, log, "ip", "project", "result"],
        check=True,
        capture_output=True,
        text=True,
        timeout=60,
    )
    built = Recorded()
    for line in log.read_text().splitlines():
        words = line.split("\t")
        command, arguments = words[0], words[1:]
        options = dict(pairwise(arguments))
        if command == "create_project":
            built.part = options["-part"]
        elif command == "create_bd_cell":
            built.cells[arguments[-1]] = options["-vlnv"]
        elif command == "create_bd_intf_port":
            built.ports[arguments[-1]] = options["-vlnv"]
        elif command == "set_property" and "-dict" in arguments:
            items = options["-dict"].split("\x1f")
            pairs = zip(items[::2], items[1::2], strict=True)
            cell = built.config.setdefault(arguments[-1], {})
            cell.update({key.removeprefix("CONFIG."): value for key, value in pairs})
        elif command == "connect_bd_intf_net":
            built.buses.add((arguments[0], arguments[1]))
        elif command == "connect_bd_net":
            built.nets.setdefault(arguments[0], set()).update(arguments[1:])
        elif command == "assign_bd_address":
            base, size = int(options["-offset"], 0), int(options["-range"], 0)
            segment = next(word for word in arguments if word.count("/") == 2)
            built.segments.add((options["-target_address_space"], segment, base, size))
        else:
            built.rest.append(words)
    return built


def expected(design: Any) -> Recorded:
    """What the record must come to, from the design itself."""
    ps = "processing_system7_0"
    return Recorded(
        part="xc7z020clg400-1",
        cells={cell.name: cell.vlnv for cell in design.cells},
        config={cell.name: dict(cell.config) for cell in design.cells if cell.config},
        ports=dict(design.external),
        buses={("/".join(source), "/".join(sink)) for source, sink in design.links}
        | {(f"{ps}/{port}", port) for port, _ in design.external},
        nets={"/".join(net.source): {"/".join(sink) for sink in net.sinks} for net in design.nets},
        segments={
            (
                f"{segment.master[0]}/{segment.space}",
                f"{'/'.join(segment.slave)}/{segment.block}",
                segment.base,
                segment.size,
            )
            for segment in design.segments
        },
    )


@needs_tclsh
@pytest.mark.parametrize("name", OVERLAYS)
def test_recorded_design_equals_the_generated_one(
    name: str, generated: dict[str, Generated], tmp_path: Path
) -> None:
    built = record(generated[name].tcl, tmp_path)
    steps = [words[0] for words in built.rest]
    for step in ("create_bd_design", "validate_bd_design", "make_wrapper", "launch_runs"):
        assert step in steps
    assert built.rest[-1][:3] == ["file", "copy", "-force"]
    assert built.rest[-1][-1] == f"result/{name}.hwh"
    built.rest = []
    assert built == expected(generated[name].design)


@needs_tclsh
@pytest.mark.parametrize("name", OVERLAYS)
def test_recorded_design_equals_the_description(
    name: str, generated: dict[str, Generated], tmp_path: Path
) -> None:
    """The same, told from overlay.toml alone, so that the generator cannot agree with itself."""
    built = record(generated[name].tcl, tmp_path)
    description = tomllib.loads((ROOT / "hw" / "overlays" / name / "overlay.toml").read_text())
    ps = "processing_system7_0"
    config = built.config[ps]
    assert float(config["PCW_FPGA0_PERIPHERAL_FREQMHZ"]) == description["clock_mhz"]
    used = set()
    for instance, item in description["instances"].items():
        vlnv = built.cells[instance]
        if "kernel" in item:
            assert vlnv == f"xilinx.com:hls:{item['kernel']}:1.0"
        else:
            assert vlnv.startswith(f"xilinx.com:ip:{item['ip']}:")
        for key, value in item.get("parameters", {}).items():
            assert built.config[instance][key] == str(value)
        for master, port in item.get("memory", {}).items():
            used.add(port)
            # A master reaches its port through the one interconnect of that port.
            bus = master if master.startswith("M_AXI") else f"m_axi_{master}"
            (middle,) = (sink for source, sink in built.buses if source == f"{instance}/{bus}")
            connect = middle.split("/")[0]
            assert (f"{connect}/M00_AXI", f"{ps}/S_AXI_{port}") in built.buses
            assert any(
                space.startswith(f"{instance}/")
                and segment == f"{ps}/S_AXI_{port}/{port}_DDR_LOWOCM"
                and (base, size) == (0, 512 << 20)
                for space, segment, base, size in built.segments
            )
    for port in ("HP0", "HP1", "HP2", "HP3"):
        assert config[f"PCW_USE_S_AXI_{port}"] == str(int(port in used))
    for stream in description.get("streams", []):
        source, sink = (end.strip().replace(".", "/") for end in stream.split("->"))
        assert (source, sink) in built.buses
    for index, interrupt in enumerate(description["interrupts"]):
        one = len(description["interrupts"]) == 1
        sink = "axi_intc_0/intr" if one else f"xlconcat_0/In{index}"
        assert built.nets[interrupt.replace(".", "/")] == {sink}
    assert built.nets["axi_intc_0/irq"] == {f"{ps}/IRQ_F2P"}
    spaces = [s for s in built.segments if s[0] == f"{ps}/Data"]
    assert len({base for _, _, base, _ in spaces}) == len(spaces)
    assert all(base >= 0x4000_0000 and size == 0x1_0000 for _, _, base, size in spaces)


def commands(tcl: str) -> list[str]:
    """Split a script into commands, continuation lines included."""
    return [c for c in re.split(r"(?<!\\)\n", tcl) if c and not c.startswith("#")]


BUILDING = ("create_project", "create_bd_cell", "create_bd_intf_port", "set_property -dict",
            "connect_", "assign_bd_address")  # fmt: skip


@needs_tclsh
def test_every_lost_command_is_noticed(generated: dict[str, Generated], tmp_path: Path) -> None:
    tcl, design = generated["stream"].tcl, generated["stream"].design
    tried = 0
    for command in commands(tcl):
        if not command.startswith(BUILDING):
            continue
        assert tcl.count(command) == 1
        built = record(tcl.replace(command, ""), tmp_path)
        built.rest = []
        assert built != expected(design), f"nobody missed: {command}"
        tried += 1
    assert tried > 25


@needs_tclsh
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("-offset 0x40010000", "-offset 0x40020000"),
        ("c_sg_length_width {23}", "c_sg_length_width {14}"),
        ("axi_dma_0/S_AXIS_S2MM", "axi_dma_0/S_AXIS"),
        ("xlconcat_0/In1", "xlconcat_0/In2"),
        ("S_AXI_HP1/HP1_DDR_LOWOCM", "S_AXI_HP0/HP0_DDR_LOWOCM"),
        ("xc7z020clg400-1", "xc7z010clg400-1"),
        ("PCW_FPGA0_PERIPHERAL_FREQMHZ {100}", "PCW_FPGA0_PERIPHERAL_FREQMHZ {50}"),
        ("scale_stream:1.0", "scale_stream:1.1"),
    ],
)
def test_a_changed_word_is_noticed(
    old: str, new: str, generated: dict[str, Generated], tmp_path: Path
) -> None:
    tcl = generated["stream"].tcl
    assert old in tcl
    built = record(tcl.replace(old, new), tmp_path)
    built.rest = []
    assert built != expected(generated["stream"].design)


def test_connectivity_of_two_units(generated: dict[str, Generated]) -> None:
    lines = generated["gemm_dual"].connectivity.splitlines()
    assert "nk=gemm:1:gemm_0" in lines
    assert "nk=gemm_lut:1:gemm_lut_0" in lines
    description = tomllib.loads((ROOT / "hw/overlays/gemm_dual/overlay.toml").read_text())
    wanted = {
        f"sp={unit}.m_axi_{master}:{port}"
        for unit, item in description["instances"].items()
        for master, port in item.get("memory", {}).items()
    }
    assert {line for line in lines if line.startswith("sp=")} == wanted
    assert "freqHz=100000000:gemm_lut_0" in lines


def test_connectivity_names_what_the_platform_must_bring(generated: dict[str, Generated]) -> None:
    text = generated["stream"].connectivity
    assert "axi_dma_0" in text
    assert "# stream_connect=axi_dma_0.M_AXIS_MM2S:scale_stream_0.samples" in text
    assert not [line for line in text.splitlines() if line.startswith("stream_connect")]


VIVADO = """#!/bin/sh
# stands in for Vivado: every command of the script is recorded, the results are prepared
[ "$1" = -version ] && {{ echo "Vivado v0 (stand-in)"; exit 0; }}
[ -e {folder}/fails ] && {{ echo "ERROR: no licence"; exit 1; }}
[ -z "$7" ] && exec {tclsh} {recorder} "$5" {folder}/packaging
{tclsh} {recorder} "$5" {folder}/record "$7" "$8" "$9" && cp {folder}/vadd.* "$9"
"""


@needs_tclsh
def test_the_command_runs_vivado_and_takes_its_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    root, folder = tmp_path / "root", tmp_path / "bin"
    for part in ("hw/overlays/vadd", "hw/kernels/vadd"):
        shutil.copytree(ROOT / part, root / part)
    folder.mkdir()
    script = VIVADO.format(folder=folder, tclsh=TCLSH, recorder=RECORDER)
    (folder / "vivado").write_text(script)
    (folder / "vivado").chmod(0o755)
    shutil.copy(ROOT / "bitstreams" / "vadd" / "vadd.hwh", folder)
    (folder / "vadd.bit").write_bytes(real_image("vadd"))
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    command = ["overlay", "bitstream", "vadd", "--root", str(root), "--out", str(tmp_path / "out")]
    assert main(command) == 1
    assert 'run: make -C hw kernels KERNELS="vadd"' in capsys.readouterr().err
    packaged = root / "hw" / "build" / "hls" / "ip" / "vadd"
    packaged.mkdir(parents=True)
    (packaged / "component.xml").touch()
    (root / "hw" / "build" / "result").mkdir()
    (folder / "fails").touch()
    assert main(command) == 1
    assert "vivado failed, exit status 1:\nERROR: no licence" in capsys.readouterr().err
    (folder / "fails").unlink()
    assert main(command) == 0
    record = (folder / "record").read_text().splitlines()
    assert f"set_property\tip_repo_paths\t{packaged}\t" in record
    manifest = json.loads((tmp_path / "out" / "vadd" / "manifest.json").read_text())
    assert manifest["tools"] == {"vivado": "Vivado v0 (stand-in)"}
    assert manifest["routed"]["reached_mhz"] == manifest["clock_mhz"] == 100
    assert manifest["hardware"] == "never run on a board"
    assert manifest["rtl"] == []
    shutil.rmtree(packaged)
    shutil.copytree(ROOT / "hw/rtl", root / "hw/rtl")
    assert main([*command, "--rtl"]) == 0
    folder_of_ip = root / "hw" / "build" / "rtl" / "ip" / "vadd"
    record = (folder / "record").read_text().splitlines()
    assert f"set_property\tip_repo_paths\t{folder_of_ip}\t" in record
    manifest = json.loads((tmp_path / "out" / "vadd" / "manifest.json").read_text())
    assert manifest["rtl"] == ["vadd"]
    assert manifest["sources"].keys() >= {"hw/kernels/vadd/rtl/vadd.sv", "hw/rtl/axi_read.sv"}


# ---- RTL as an IP --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["vadd", "gemm", "stream", "net"])
def test_the_wrapper_of_rtl_has_the_buses_of_the_kernel(name: str, tmp_path: Path) -> None:
    cells = {cell.kind: cell for cell in make_design(name)[0].cells if ":hls:" in cell.vlnv}
    for kernel, (folder, files) in write_ips(name, out=tmp_path).items():
        top = f"{kernel}_ip"
        wrapper = folder / "src" / f"{top}.v"
        assert {file.name for file in files} == {p.name for p in wrapper.parent.glob("*.sv")}
        source = RtlSource(top, top, wrapper.parent, (wrapper, *files))
        work = tmp_path / "work"
        work.mkdir()
        found = elaborate(find_verilator(), source, work)  # pins that do not fit are errors of it
        assert verilate(find_verilator(), source, found, "", work)
        interfaces = group(found.ports, top=top)
        said = dict(re.findall(r'"xilinx.com:\S+ (\S+ \S+)".*\n.* (\w+)\b', wrapper.read_text()))
        for bus in interfaces.ports:
            for signal, port in bus.signals.items():
                assert said[f"{bus.name} {signal}"] == port
        assert {bus.name for bus in interfaces.ports} == {b.name for b in cells[kernel].buses}


def test_overlays_without_rtl_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["overlay", "bitstream", "signal", "--rtl"]) == 1
    assert "signal: none of fir, chain, " in capsys.readouterr().err


@needs_tclsh
def test_the_recorded_ip_is_the_cell_of_the_block_design(tmp_path: Path) -> None:
    (cell,) = (cell for cell in make_design("vadd")[0].cells if cell.kind == "vadd")
    names = ["vadd_ip.v", "vadd.sv"]
    script = tmp_path / "package.tcl"
    script.write_text(write_packaging(cell, "vadd_ip", names))
    assert TCLSH is not None
    subprocess.run([TCLSH, RECORDER, script, tmp_path / "record"], check=True, timeout=60)
    lines = [line.split("\t") for line in (tmp_path / "record").read_text().splitlines()]
    assert [words[-1] for words in lines if words[0] == "add_files"] == [
        f"{tmp_path}/src/{name}" for name in names
    ]
    vlnv = {words[1]: words[2] for words in lines if words[0] == "set_property"}
    assert (vlnv["top"], vlnv["name"], vlnv["version"]) == ("vadd_ip", "vadd", "1.0")
    registers: dict[str, dict[str, str]] = {}
    fields: dict[tuple[str, str], dict[str, str]] = {}
    spaces, last = [], {}
    for command, first, *rest in (line for line in lines if len(line) > 1):
        if command == "ipx::add_register":
            last = registers[first] = {}
            register = first
        elif command == "ipx::add_field":
            last = fields[register, first] = {}
        elif command == "ipx::add_address_space":
            spaces.append(first)
            last = {}
        elif command == "set_property":
            last[first] = rest[0]
    (control,) = (bus for bus in cell.buses if bus.registers)
    assert {(name, int(r["address_offset"], 0), int(r["size"]), r["access"])
            for name, r in registers.items()} == {
        (r.name, r.offset, r.size, r.access) for r in control.registers}  # fmt: skip
    assert {(*name, int(f["bit_offset"]), int(f["bit_width"])) for name, f in fields.items()} == {
        (r.name, f.name, f.offset, f.width) for r in control.registers for f in r.fields
    }
    assert spaces == [f"Data_m_axi_gmem{n}" for n in range(3)]
