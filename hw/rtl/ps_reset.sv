// ps_reset: a reset for the PL that begins with the PS' own, or with the end of the configuration, and
// ends 16 clock edges later.
`default_nettype none

module ps_reset (
    input  wire logic clk_i,
    input  wire logic fclk_resetn_i,  // of the PS, at any time
    output logic      rst_no
);

  // With an asynchronous clear no SRL can be made of it.
  /* verilator lint_off PROCASSINIT */  // the configuration leaves zeros: that begins the reset
  logic [15:0] steps_q = '0;
  /* verilator lint_on PROCASSINIT */
  assign rst_no = steps_q[15];

  always_ff @(posedge clk_i or negedge fclk_resetn_i) begin
    if (!fclk_resetn_i) steps_q <= '0;
    else steps_q <= {steps_q[14:0], 1'b1};
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!fclk_resetn_i) rst_no |=> rst_no)
  else $error("ps_reset: the reset came back by itself");
`endif

endmodule

`default_nettype wire
