// axi_responses: keeps the first answer of each AXI channel that is not OKAY, from the end of a run to the end of the next.
//
// Two bits of status_o a channel: 0 every answer was OKAY, 2 SLVERR, 3 DECERR. A kernel shows them in a
// register, since AP_DONE says only that a run is over, not that memory took part in it.
`default_nettype none

module axi_responses #(
    parameter int unsigned CHANNELS = 2  // of answers: R and B of each port count on their own
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic                  clear_i,  // a run ends: what was kept is taken
    input  wire logic [CHANNELS-1:0]   valid_i,  // an answer is taken
    input  wire logic [2*CHANNELS-1:0] resp_i,
    output logic [2*CHANNELS-1:0]      status_o
);

  for (genvar i = 0; i < CHANNELS; ++i) begin : gen_channel
    always_ff @(posedge clk_i) begin
      if (!rst_ni || clear_i) status_o[2*i+:2] <= '0;
      else if (valid_i[i] && resp_i[2*i+1] && !status_o[2*i+1]) status_o[2*i+:2] <= resp_i[2*i+:2];
    end
  end

  // EXOKAY answers what nobody here asks: exclusive accesses.
`ifndef SYNTHESIS
  for (genvar i = 0; i < CHANNELS; ++i) begin : gen_check
    assert property (@(posedge clk_i) disable iff (!rst_ni)
        status_o[2*i+1] && !clear_i |=> $stable(status_o[2*i+:2]))
    else $error("axi_responses: the first error of channel %0d was lost", i);
  end
`endif

endmodule

`default_nettype wire
