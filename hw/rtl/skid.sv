// skid: a stage with registered valid, data and ready. It cuts every path between its two sides and
// still moves a word a cycle: a second register holds the word that arrives while ready falls.
`default_nettype none

module skid #(
    parameter int unsigned WIDTH = 32
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             valid_i,
    output logic                  ready_o,
    input  wire logic [WIDTH-1:0] data_i,
    output logic                  valid_o,
    input  wire logic             ready_i,
    output logic [WIDTH-1:0]      data_o
);

  logic out_valid_q, spare_valid_q;
  logic [WIDTH-1:0] out_q, spare_q;
  wire push = valid_i && ready_o;
  wire out_free = !out_valid_q || ready_i;

  assign ready_o = !spare_valid_q;
  assign valid_o = out_valid_q;
  assign data_o  = out_q;

  always_ff @(posedge clk_i) begin
    if (out_free) out_q <= spare_valid_q ? spare_q : data_i;
    if (push) spare_q <= data_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q   <= 1'b0;
      spare_valid_q <= 1'b0;
    end else begin
      if (out_free) out_valid_q <= spare_valid_q || push;
      spare_valid_q <= !out_free && (spare_valid_q || push);
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_o && !ready_i |=> valid_o && $stable(data_o))
  else $error("skid: a word that was not taken yet has changed");
`endif

endmodule

`default_nettype wire
