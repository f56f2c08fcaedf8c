"""VHDL kernels on board rtl, through GHDL: what runs, what is preferred, what is said."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from helpers import write, write_overlay
from pynq import Overlay
from rtl_model import Model

import pynq_torch
from pynq_torch.board.handoff import IpInstance
from pynq_torch.board.rtl import ghdl, vhdl
from pynq_torch.board.rtl.build import build_model
from pynq_torch.board.rtl.sources import RtlSource, find_rtl
from pynq_torch.board.rtl.unit import RtlUnit
from pynq_torch.errors import RtlError, RtlLintError

KERNELS = Path(__file__).parent / "rtl_kernels"
needs_ghdl = pytest.mark.skipif(
    shutil.which("ghdl") is None, reason="no ghdl on the PATH (apt-get install ghdl)"
)
pytestmark = [pytest.mark.timeout(180), pytest.mark.usefixtures("own_cache")]

#: A stream from x to y, with a hole for what happens between them.
STREAM = """
library ieee;
use ieee.std_logic_1164.all;
use ieee.numeric_std.all;
entity {name} is
  generic (STEP : integer := 1; MASK : std_logic_vector(7 downto 0) := x"00");
  port (ap_clk, ap_rst_n : in std_logic;
        X_TDATA : in std_logic_vector(7 downto 0); X_TVALID : in std_logic;
        X_TREADY : out std_logic;
        Y_TDATA : out std_logic_vector(7 downto 0); Y_TVALID : out std_logic;
        Y_TREADY : in std_logic);
end entity;
architecture rtl of {name} is
{declarations}
begin
  X_TREADY <= Y_TREADY;
  Y_TVALID <= X_TVALID;
{body}
end architecture;
"""
PLUS = "Y_TDATA <= std_logic_vector(unsigned(X_TDATA) + STEP) xor MASK;"


def stream(body: str, name: str = "k", declarations: str = "") -> str:
    return STREAM.format(name=name, body=body, declarations=declarations)


def found(folder: Path, **parameters: str) -> RtlSource:
    ip = IpInstance("k_0", "xilinx.com:hls:k:1.0", parameters=parameters)
    source = find_rtl([folder], "k", ip)
    assert source is not None
    return source


def answers(source: RtlSource, *values: int) -> list[int]:
    """Return Y_TDATA for values of X_TDATA, a clock each."""
    model = Model(build_model(source).library)
    model.reset()
    given = []
    for value in values:
        model["X_TDATA"] = value
        model["X_TVALID"] = model["Y_TREADY"] = 1
        model.clock()
        given.append(model["Y_TDATA"])
    model.close()
    return given


@needs_ghdl
@pytest.mark.parametrize("name", ["csim", "rtl"])
def test_a_program_runs_as_with_any_kernel(name, tmp_path):
    bit = write_overlay(tmp_path, {"sum_0": "sum_of_two"}, kernels=KERNELS)
    board = pynq_torch.use_board(name, kernels=[KERNELS])
    kernel = Overlay(str(bit)).sum_0
    for a, b in ((41, 1), (2**31 - 1, -(2**31)), (0xFFFF, 0xFFFF0000)):
        kernel.register_map.a, kernel.register_map.b = a, b & 0xFFFFFFFF
        kernel.register_map.CTRL.AP_START = 1
        while not kernel.register_map.CTRL.AP_DONE:
            pass
        assert int(kernel.register_map.sum) == (a + b) & 0xFFFFFFFF
    assert kernel.register_map.CTRL.AP_IDLE == 1
    if name == "rtl":
        assert isinstance(board.ip["sum_0"], RtlUnit)
        assert 20 <= board.cus["sum_0"].last_run.cycles < 30
    board.close()


@needs_ghdl
def test_generics_are_those_of_the_instance(tmp_path):
    write(tmp_path / "k/rtl/k.vhdl", stream(PLUS))
    assert answers(found(tmp_path), 1, 255) == [2, 0]
    assert answers(found(tmp_path, step="3", MASK="0xF0", OTHER="text"), 1) == [0xF4]
    with pytest.raises(RtlError, match="generic STEP of entity k is 'fast' .* type integer"):
        found(tmp_path, STEP="fast")


@pytest.mark.parametrize(
    ("value", "kind", "rest", "literal"),
    [
        ("0x1F", "natural", "", "31"),
        ("-4", "integer", "", "-4"),
        ("true", "boolean", "", "true"),
        ("0", "boolean", "", "false"),
        ("0x0A", "std_logic_vector", "(5 downto 0) := x", "001010"),
        ('"0101"', "unsigned", "", "0101"),
        ("12", "std_logic_vector", "", None),
        ("1", "std_logic", "", "'1'"),
        ("fast", "string", "", "fast"),
    ],
)
def test_values_of_generics(value, kind, rest, literal):
    assert vhdl._literal(value, kind, rest) == literal


@needs_ghdl
def test_every_choice_of_a_case(tmp_path):
    """GHDL 2.0 leaves `others` out of the Verilog that it writes."""
    body = """process (all) begin
      case X_TDATA(1 downto 0) is
        when "00" => Y_TDATA <= x"10";
        when "01" => Y_TDATA <= not X_TDATA;
        when others => Y_TDATA <= std_logic_vector(unsigned(X_TDATA) + 1);
      end case;
    end process;"""
    write(tmp_path / "k/rtl/k.vhd", stream(body))
    assert answers(found(tmp_path), 0, 1, 2, 3, 0) == [0x10, 0xFE, 3, 4, 0x10]


@needs_ghdl
def test_a_long_constant(tmp_path):
    declarations = """signal state : std_logic_vector(69 downto 0);
      constant FIRST : std_logic_vector(69 downto 0) := (69 => '1', 3 => '1', others => '0');"""
    body = """Y_TDATA <= state(69 downto 66) & state(3 downto 0);
      state <= FIRST when X_TDATA(0) = '1' else not FIRST;"""
    write(tmp_path / "k/rtl/k.vhd", stream(body, declarations=declarations))
    assert answers(found(tmp_path), 1, 0) == [0x88, 0x77]


def test_others_that_cannot_be_put_back_are_refused():
    case = "    case (n1_o)\n      1'b1: n2_o <= a;\n    endcase\n"
    assert ghdl._lacks_defaults(case)
    good = ghdl._with_defaults(
        "k", case, "with n1_o select n2_o <=\n  a when \"1\",\n  '0' when others;"
    )
    assert "default: n2_o <= 1'b0;" in good and not ghdl._lacks_defaults(good)
    for other in ("", "with n1_o select n3_o <= a when '1', '0' when others;"):
        with pytest.raises(RtlError, match="k: this GHDL leaves the others of a case out"):
            ghdl._with_defaults("k", case, other)


@needs_ghdl
def test_a_memory_as_hls_writes_it(tmp_path):
    """A shared variable without a first value ends GHDL 2.0; an instance is called as a signal."""
    declarations = """
      type words is array (0 to 255) of std_logic_vector(7 downto 0);
      shared variable ram : words;
      signal part_q : std_logic_vector(7 downto 0);
      component part is port (d : in std_logic_vector(7 downto 0);
                              q : out std_logic_vector(7 downto 0)); end component;"""
    body = """part : component part port map (d => X_TDATA, q => part_q);
      process (ap_clk) begin
        if rising_edge(ap_clk) then
          Y_TDATA <= ram(to_integer(unsigned(part_q)));
          ram(to_integer(unsigned(part_q))) := not X_TDATA;
        end if;
      end process;"""
    entity = """library ieee; use ieee.std_logic_1164.all;
      entity part is port (d : in std_logic_vector(7 downto 0);
                           q : out std_logic_vector(7 downto 0)); end entity;
      architecture rtl of part is begin q <= d; end architecture;"""
    write(tmp_path / "k/rtl/k.vhd", stream(body, declarations=declarations))
    write(tmp_path / "k/rtl/part.vhd", entity)
    source = found(tmp_path)
    assert answers(source, 5, 9, 5, 9) == [0, 0, 0xFA, 0xF6]
    assert len(source.files[0].read_text()) < 10_000  # not a line for every word


@needs_ghdl
def test_vhdl_that_only_the_older_standard_takes(tmp_path):
    body = "context <= X_TDATA; Y_TDATA <= context;"  # reserved since 2008
    declarations = "signal context : std_logic_vector(7 downto 0);"
    write(tmp_path / "k/rtl/k.vhd", stream(body, declarations=declarations))
    assert answers(found(tmp_path), 7) == [7]


@needs_ghdl
def test_names_that_verilog_reserves(tmp_path):
    body = "reg <= X_TDATA; logic <= reg; Y_TDATA <= logic;"
    declarations = "signal reg, logic : std_logic_vector(7 downto 0);"
    write(tmp_path / "k/rtl/k.vhd", stream(body, declarations=declarations))
    assert answers(found(tmp_path), 7) == [7]


@needs_ghdl
def test_an_error_names_file_and_line(tmp_path):
    write(tmp_path / "k/rtl/k.vhd", stream("Y_TDATA <= nowhere;"))
    line = stream("").count("\n", 0, stream("").index("Y_TVALID <=")) + 2
    with pytest.raises(RtlLintError, match=rf'k\.vhd:{line}: no declaration for "nowhere"'):
        found(tmp_path)


@needs_ghdl
def test_verilog_comes_first(tmp_path):
    write(tmp_path / "k/hdl/vhdl/k.vhd", stream("Y_TDATA <= nowhere;"))
    write(tmp_path / "k/hdl/verilog/k.v", "module k (input wire ap_clk);\nendmodule\n")
    assert [file.name for file in found(tmp_path).files] == ["k.v"]
    (tmp_path / "k/hdl/verilog/k.v").unlink()
    write(tmp_path / "k/hdl/vhdl/k.vhd", stream(PLUS, "K"))
    source = found(tmp_path)
    assert (source.export, answers(source, 4)) == (True, [5])


@needs_ghdl
def test_verilog_inside_vhdl_and_the_other_way_round(tmp_path):
    box = """component Box is generic (BY : integer := 1);
      port (A : in std_logic_vector(7 downto 0); B : out std_logic_vector(7 downto 0));
      end component;"""
    body = "inner : Box generic map (BY => 5) port map (A => X_TDATA, B => Y_TDATA);"
    verilog = """module Box #(parameter BY = 1) (input [7:0] A, output [7:0] B);
      assign B = A + BY[7:0];\nendmodule\n"""
    write(tmp_path / "one/k/rtl/k.vhd", stream(body, declarations=box))
    write(tmp_path / "one/k/rtl/box.v", verilog)
    assert answers(found(tmp_path / "one"), 2) == [7]
    ports = """input ap_clk, ap_rst_n, input [7:0] X_TDATA, input X_TVALID, output X_TREADY,
      output [7:0] Y_TDATA, output Y_TVALID, input Y_TREADY"""
    pins = [
        "ap_clk",
        "ap_rst_n",
        "X_TDATA",
        "X_TVALID",
        "X_TREADY",
        "Y_TDATA",
        "Y_TVALID",
        "Y_TREADY",
    ]
    connected = ", ".join(f".{pin}({pin})" for pin in pins)
    top = f"module k ({ports});\n  inner i ({connected});\nendmodule\n"
    write(tmp_path / "two/k/rtl/k.v", top)
    write(tmp_path / "two/k/rtl/inner.vhd", stream(PLUS, "inner"))
    assert answers(found(tmp_path / "two"), 2) == [3]


@needs_ghdl
def test_what_was_converted_stays(tmp_path, monkeypatch):
    write(tmp_path / "k/rtl/k.vhd", stream(PLUS))
    first = found(tmp_path).files
    with monkeypatch.context() as patch:
        patch.setattr(vhdl, "synthesise", None)
        assert found(tmp_path).files == first
    write(tmp_path / "k/rtl/k.vhd", stream(PLUS.replace("+", "-")))
    assert answers(found(tmp_path), 4) == [3]


def test_without_ghdl_the_package_is_named(tmp_path, monkeypatch):
    write(tmp_path / "k/rtl/k.vhd", stream(PLUS))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(RtlError, match=r"k: its RTL is VHDL \(.*k\.vhd\).*apt-get install ghdl"):
        found(tmp_path)


def test_vhdl_without_the_top_names_the_entities(tmp_path):
    write(tmp_path / "k/rtl/other.vhd", stream(PLUS, "other"))
    with pytest.raises(RtlError, match=r"no module of that name .* 1 VHDL files have other\."):
        found(tmp_path)
