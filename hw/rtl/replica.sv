// replica: a register of its own for what many use, a cycle late. Synthesis merges equal registers, and one that
// drives half of the part has long wires; this one stays (`keep` is for yosys, `dont_touch` for Vivado).
`default_nettype none

module replica #(
    parameter int unsigned WIDTH = 1
) (
    input  wire logic             clk_i,
    input  wire logic [WIDTH-1:0] data_i,
    output logic [WIDTH-1:0]      data_o
);

  /* verilator lint_off PROCASSINIT */  // begins with zeros: what it is a copy of may be a reset
  (* keep = "true", dont_touch = "true" *) logic [WIDTH-1:0] data_q = '0;
  /* verilator lint_on PROCASSINIT */

  (* keep *)
  always_ff @(posedge clk_i) data_q <= data_i;

  assign data_o = data_q;

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) 1'b1 |=> data_o == $past(data_i))
  else $error("replica: %h is no copy of what was there a cycle before", data_o);
`endif

endmodule

`default_nettype wire
