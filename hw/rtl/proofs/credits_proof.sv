// credits_proof: what was promised and not given back never exceeds the queue; `room_o` is high exactly when
// another promise fits, `idle_o` when there is none.
`default_nettype none

module credits_proof #(
    parameter int unsigned TOTAL = 8,
    parameter int unsigned TAKE  = 4,
    parameter int unsigned GIVES = 2
) (
    input wire logic             clk_i,
    input wire logic             rst_ni,
    input wire logic             take_i,
    input wire logic [GIVES-1:0] give_i
);

  localparam int unsigned COUNT_BITS = $clog2(TOTAL + TAKE + 1);

  logic room_o, idle_o;

  credits #(
      .TOTAL(TOTAL),
      .TAKE (TAKE),
      .GIVES(GIVES)
  ) dut (
      .*
  );

  // Words that were promised and have not come back.
  logic live_q = 1'b0;  // there was a reset
  logic [COUNT_BITS-1:0] promised_q;
  wire [COUNT_BITS-1:0] given = COUNT_BITS'(give_i[0]) + COUNT_BITS'(give_i[1]);

  always_ff @(posedge clk_i) begin
    live_q     <= live_q || !rst_ni;
    promised_q <= rst_ni ? promised_q + (take_i ? COUNT_BITS'(TAKE) : '0) - given : '0;
  end

  // A promise is made where there is room, and only what was promised before is given back.
  wire with_room = !take_i || room_o;
  wire given_once = !live_q || given <= promised_q;

  wire no_overflow = !live_q || promised_q <= COUNT_BITS'(TOTAL);
  wire room_is_right = !live_q || room_o == (promised_q + COUNT_BITS'(TAKE) <= COUNT_BITS'(TOTAL));
  wire idle_is_right = !live_q || idle_o == (promised_q == '0);
  // An invariant, without which induction starts in states that never are.
  wire counts_match = !live_q || COUNT_BITS'(dut.left_q) + promised_q == COUNT_BITS'(TOTAL);

  always_comb begin
    assume (with_room);
    assume (given_once);
    assert (no_overflow);
    assert (room_is_right);
    assert (idle_is_right);
    assert (counts_match);
  end

endmodule

`default_nettype wire
