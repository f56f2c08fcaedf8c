// fifo_proof: words leave `fifo` in the order in which they came, none is lost and none comes twice.
`default_nettype none

module fifo_proof #(
    parameter int unsigned WIDTH = 2,
    parameter int unsigned DEPTH = 4
) (
    input wire logic             clk_i,
    input wire logic             rst_ni,
    input wire logic             valid_i,
    input wire logic [WIDTH-1:0] data_i,
    input wire logic             ready_i
);

  localparam int unsigned INDEX_BITS = $clog2(DEPTH);
  localparam int unsigned COUNT_BITS = $clog2(DEPTH + 1);

  logic ready_o, valid_o;
  logic [WIDTH-1:0] data_o;
  logic [COUNT_BITS-1:0] count_o;

  fifo #(
      .WIDTH(WIDTH),
      .DEPTH(DEPTH)
  ) dut (
      .*
  );

  // What is inside, oldest first: a shift register.
  logic live_q = 1'b0;  // there was a reset
  logic [COUNT_BITS-1:0] count_q;
  logic [WIDTH-1:0] model_q[DEPTH];
  wire push = valid_i && ready_o;
  wire pop = valid_o && ready_i;
  wire [COUNT_BITS-1:0] left = count_q - COUNT_BITS'(pop);

  always_ff @(posedge clk_i) begin
    live_q  <= live_q || !rst_ni;
    count_q <= rst_ni ? left + COUNT_BITS'(push) : '0;
    for (int unsigned i = 0; i < DEPTH; ++i) begin
      if (push && COUNT_BITS'(i) == left) model_q[i] <= data_i;
      else if (pop && i + 1 < DEPTH) model_q[i] <= model_q[(i+1)%DEPTH];
    end
  end

  wire counts = !live_q || (count_o == count_q && valid_o == (count_q != '0));
  wire full = !live_q || ready_o == (count_q != COUNT_BITS'(DEPTH));
  wire no_overflow = !live_q || count_q <= COUNT_BITS'(DEPTH);
  wire in_order = !live_q || !valid_o || data_o == model_q[0];
  // Invariants, without which induction starts in states that never are.
  wire [INDEX_BITS-1:0] distance = dut.tail_q - dut.head_q;
  wire indices_match = !live_q || distance == INDEX_BITS'(count_q);
  logic words_match;

  always_comb begin
    words_match = 1'b1;
    for (int unsigned i = 0; i < DEPTH; ++i) begin
      if (live_q && COUNT_BITS'(i) < count_q && dut.words[INDEX_BITS'(dut.head_q+INDEX_BITS'(i))] != model_q[i])
        words_match = 1'b0;
    end
  end

  always_comb begin
    assert (counts);
    assert (full);
    assert (no_overflow);
    assert (in_order);
    assert (indices_match);
    assert (words_match);
  end

endmodule

`default_nettype wire
