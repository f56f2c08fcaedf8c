"""Two drivers of one net: refused with both places; what only looks like it passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pynq_torch.board.rtl import lint
from pynq_torch.board.rtl.sources import find_rtl
from pynq_torch.board.rtl.verilate import elaborate, verilate
from pynq_torch.errors import RtlLintError

#: Line 1 of every file; the bodies begin at line 2.
HEAD = (
    "module k (input wire ap_clk, input wire ap_rst_n, input wire x_TVALID, output wire x_TREADY, "
    "input wire [7:0] x_TDATA, input wire a, input wire b, output wire y, "
    "output {logic} [7:0] z, output wire t);\n"
)
#: An inverter, and a pin that can let go of its net.
PARTS = """
module inverter (input wire i, output wire o); assign o = ~i; endmodule
module pin (inout wire io, input wire oe, input wire o); assign io = oe ? o : 1'bz; endmodule
"""


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("PYNQ_TORCH_CACHE", str(tmp_path / "cache"))


def read(
    folder: Path, body: str, suffix: str = "sv", *, export: bool = False, whole: bool = False
) -> None:
    place = folder / "k" / ("" if export else "rtl")
    place.mkdir(parents=True)
    head = HEAD.format(logic="logic" if suffix == "sv" else "reg")
    (place / f"k.{suffix}").write_text(head + body + "\nendmodule\n" + PARTS)
    source = find_rtl([folder], "k")
    assert source is not None
    assert source.export == export
    work = folder / "work"
    work.mkdir()
    design = elaborate(lint.find_verilator(), source, work)
    if whole:
        verilate(lint.find_verilator(), source, design, "", work)


CLOCKED = "always @(posedge ap_clk)"


@pytest.mark.parametrize("export", [False, True], ids=["by hand", "export"])
@pytest.mark.parametrize("suffix", ["v", "sv"])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("assign y = a;", "assign y = b;"),
        ("wire q = a;", "assign q = b;"),
        ("wire q = 1'b0;", "assign q = 1'b1;"),
        ("assign {y, t} = {a, b};", "assign y = b;"),
        ("inverter u (.i(a), .o(y));", "inverter v (.i(b), .o(y));"),
        ("inverter u (.i(a), .o(y));", "assign y = b;"),
        (f"reg q; {CLOCKED} q <= a;", f"{CLOCKED} q <= b;"),
        (f"reg q; {CLOCKED} q <= a;", "always @* q = b;"),
        (f"{CLOCKED} z[4:0] <= 5'd1;", f"{CLOCKED} z[7:4] <= 4'd2;"),
        (f"{CLOCKED} z[{{a, b}}] <= a;", f"{CLOCKED} z[0] <= b;"),
        (f"reg [3:0] m [0:3]; {CLOCKED} m[1][0] <= a;", f"{CLOCKED} m[1][3:0] <= 4'd0;"),
        (f"task put(input v); z[3] = v; endtask {CLOCKED} put(a);", f"{CLOCKED} z[3] = b;"),
        (
            f"integer i; {CLOCKED} for (i = 0; i < 5; i = i + 1) z[i] <= a;",
            f"{CLOCKED} for (i = 4; i < 8; i = i + 1) z[i] <= b;",
        ),
        ("assign t = a ? b : 1'bz;", "assign t = b;"),
        ("pin u (.io(t), .oe(a), .o(b));", "inverter v (.i(a), .o(t));"),
    ],
)  # fmt: skip
def test_two_drivers_are_refused_with_both_lines(tmp_path, first, second, suffix, export):
    with pytest.raises(RtlLintError) as caught:
        read(tmp_path, f"{first}\n{second}", suffix, export=export)
    file = rf"\S*k\.{suffix}"
    said = rf"{file}:2: \w+ of module k has two drivers: .* and .* at {file}:3 \[MULTIDRIVEN\]"
    assert re.search(said, str(caught.value)), caught.value


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "for (genvar i = 0; i < 2; i++) begin : g assign y = a; end",
            "y of module k has two drivers: the assign here, and the assign at",
        ),
        ("inverter u[1:0] (.i(a), .o(y));", "the output of instance u here, and the output of"),
        ("inverter u (.i(a), .o(y));\nassign u.o = b;", "o of module inverter has two drivers"),
        (
            "typedef struct packed {logic p, q;} s_t; s_t s;\nassign s.p = a, s = 2'b0;",
            "s of module k has two drivers: the assign here",
        ),
        ("always_ff @(posedge ap_clk) z <= 0;\nalways_comb z[7] = a;", "the always_comb block"),
    ],
)
def test_two_drivers_in_what_only_systemverilog_has(tmp_path, body, said):
    with pytest.raises(RtlLintError, match=re.escape(said)):
        read(tmp_path, body)


def test_two_drivers_in_a_module_further_down(tmp_path):
    body = """middle m (.i(a), .o(y));
endmodule
module middle (input wire i, output wire o);
  wire q;
  inverter u (.i(i), .o(q));
  assign q = i;
  assign o = q;"""
    with pytest.raises(RtlLintError) as caught:
        read(tmp_path, body)
    assert re.search(r"k.sv:6: q of module middle has two drivers: .*k.sv:7", str(caught.value))


@pytest.mark.parametrize("export", [False, True], ids=["by hand", "export"])
def test_two_drivers_of_an_interface_name_both_places(tmp_path, export):
    body = """bus_if bus ();
  writer w (.bus(bus), .a);
  assign bus.v = b, y = bus.v;
endmodule
interface bus_if; logic v; modport out (output v); endinterface
module writer (bus_if.out bus, input logic a);
  assign bus.v = a;"""
    with pytest.raises(RtlLintError) as caught:
        read(tmp_path, body, export=export, whole=True)
    said = str(caught.value)
    assert "k.bus.v" in said
    assert re.search(r"Its drivers are at \S*k.sv:4 and \S*k.sv:8", said), said


def test_what_hardware_can_do_passes(tmp_path):
    body = f"""
  assign z[0] = a, z[7:1] = 7'd0;                     // bits apart
  reg [7:0] r, w, x;
  for (genvar i = 0; i < 8; i++) begin : bits
    {CLOCKED} r[i] <= a;
  end
  if (1) begin : one assign y = a; end else begin : other assign y = b; end
  {CLOCKED} begin w <= 8'd0; if (a) w <= 8'd1; w[0] <= b; end   // one block, the last one wins
  initial w = 8'd3;
  reg [1:0] begins = 2'd1;
  initial begin begins = 2'd2; end
  {CLOCKED} begins <= {{a, b}};
  integer i, j;                                       // loops that share their counters
  {CLOCKED} for (i = 0; i < 4; i = i + 1) x[i] <= a;
  {CLOCKED} for (i = 4; i < 8; i = i + 1) x[i] <= b;
  reg [7:0] up;
  {CLOCKED} for (i = 0, j = 3; i < 4; i = i + 1, j = j - 1) up[j] <= a;
  {CLOCKED} for (i = 0, j = 7; i < 4; i = i + 1, j = j - 1) up[j] <= b;
  reg [3:0] ram [0:3];                                // two ports
  {CLOCKED} if (a) ram[{{a, b}}] <= 4'd1;
  {CLOCKED} if (b) ram[{{b, a}}] <= 4'd2;
  logic [3:0] banks [2];                              // elements apart
  {CLOCKED} banks[0] <= 4'd1;
  {CLOCKED} banks[1] <= 4'd2;
  assign t = a ? b : 1'bz;                            // each lets go of the pin
  assign t = b ? a : 1'bz;
  pin u (.io(t), .oe(a), .o(b));
  wand both;                                          // a net that joins what its drivers say
  assign both = a;
  assign both = b;
  wire idle;                                          // a pull-up
  assign (weak0, weak1) idle = 1'b1;
  assign idle = a ? 1'b0 : 1'bz;
  bus_if bus[2] ();                                   // two instances, each with its own driver
  writer v0 (.bus(bus[0]), .a);
  reader v1 (.bus(bus[1]), .a);
  wire [1:0] not_a;
  inverter n[1:0] (.i({{a, b}}), .o(not_a));
endmodule
interface bus_if; logic v; modport out (output v); endinterface
module writer (bus_if.out bus, input logic a); assign bus.v = a; endmodule
module reader (bus_if.out bus, input logic a); assign bus.v = ~a;"""
    read(tmp_path, body)
