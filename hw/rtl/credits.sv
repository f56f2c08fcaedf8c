// credits: promises room of a queue before the words for it set out, so that what is on the way there needs
// no enable: it never has to stop.
//
// take_i promises TAKE words at once and may be high while room_o is; each bit of give_i gives one back: a
// word that left the queue, or one that did not come. room_o is a register, for all that it holds back.
`default_nettype none

module credits #(
    parameter int unsigned TOTAL = 512,  // words of the queue
    parameter int unsigned TAKE  = 128,  // words a promise is for
    parameter int unsigned GIVES = 2     // bits of give_i
) (
    input  wire logic             clk_i,
    input  wire logic             rst_ni,
    input  wire logic             take_i,
    input  wire logic [GIVES-1:0] give_i,
    output logic                  room_o,  // for another promise
    output logic                  idle_o   // nothing is promised
);

  localparam int unsigned COUNT_BITS = $clog2(TOTAL + 1);

  logic [COUNT_BITS-1:0] left_q, given, left_d;

  always_comb begin
    given = '0;
    for (int unsigned i = 0; i < GIVES; ++i) given = given + COUNT_BITS'(give_i[i]);
    left_d = left_q + given - (take_i ? COUNT_BITS'(TAKE) : '0);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      left_q <= COUNT_BITS'(TOTAL);
      room_o <= 1'b1;
      idle_o <= 1'b1;
    end else begin
      left_q <= left_d;
      room_o <= left_d >= COUNT_BITS'(TAKE);
      idle_o <= left_d == COUNT_BITS'(TOTAL);
    end
  end

`ifndef SYNTHESIS
  initial assert (TAKE >= 1 && TAKE <= TOTAL)
  else $fatal(1, "credits: promises of %0d words in a queue of %0d", TAKE, TOTAL);
  assert property (@(posedge clk_i) disable iff (!rst_ni) take_i |-> room_o)
  else $error("credits: a promise without room");
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      32'(left_q) + 32'(given) <= TOTAL + (take_i ? TAKE : 0))
  else $error("credits: more is given back than was promised");
`endif

endmodule

`default_nettype wire
