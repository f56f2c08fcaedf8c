// gemm_queue_proof: words leave `gemm_queue` in the order in which they came, none is lost and none
// comes twice; the word that is offered stays until it is taken.
`default_nettype none

module gemm_queue_proof #(
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
  localparam int unsigned ROOM = DEPTH + 1;  // the memory, and the word on data_o
  localparam int unsigned COUNT_BITS = $clog2(ROOM + 1);

  logic ready_o, valid_o;
  logic [WIDTH-1:0] data_o;

  gemm_queue #(
      .WIDTH(WIDTH),
      .DEPTH(DEPTH)
  ) dut (
      .*
  );

  // What is inside, oldest first: a shift register.
  logic live_q = 1'b0;  // there was a reset
  logic [COUNT_BITS-1:0] count_q;
  logic [WIDTH-1:0] model_q[ROOM];
  logic held_q;  // the step before offered a word, and nobody took it
  logic fetched_q;  // the step before had words inside, and room on data_o
  wire push = valid_i && ready_o;
  wire pop = valid_o && ready_i;
  wire [COUNT_BITS-1:0] left = count_q - COUNT_BITS'(pop);

  always_ff @(posedge clk_i) begin
    live_q  <= live_q || !rst_ni;
    count_q <= rst_ni ? left + COUNT_BITS'(push) : '0;
    held_q  <= rst_ni && valid_o && !ready_i;
    fetched_q <= rst_ni && count_q != COUNT_BITS'(valid_o) && (!valid_o || ready_i);
    for (int unsigned i = 0; i < ROOM; ++i) begin
      if (push && COUNT_BITS'(i) == left) model_q[i] <= data_i;
      else if (pop && i + 1 < ROOM) model_q[i] <= model_q[(i+1)%ROOM];
    end
  end

  wire full = !live_q || ready_o == (count_q - COUNT_BITS'(valid_o) != COUNT_BITS'(DEPTH));
  wire comes_out = !live_q || !fetched_q || valid_o;
  wire stays = !live_q || !held_q || valid_o;
  wire no_overflow = !live_q || count_q <= COUNT_BITS'(ROOM);
  wire in_order = !live_q || !valid_o || (count_q != '0 && data_o == model_q[0]);
  // Invariants, without which induction starts in states that never are.
  wire [INDEX_BITS-1:0] distance = dut.tail_q - dut.head_q;
  wire counts_match = !live_q || COUNT_BITS'(dut.count_q) + COUNT_BITS'(valid_o) == count_q;
  wire indices_match = !live_q
      || (dut.count_q <= (INDEX_BITS + 1)'(DEPTH) && distance == INDEX_BITS'(dut.count_q));
  logic words_match;

  always_comb begin
    words_match = 1'b1;
    for (int unsigned i = 0; i < DEPTH; ++i) begin
      if (live_q && (INDEX_BITS + 1)'(i) < dut.count_q
          && dut.words[INDEX_BITS'(dut.head_q+INDEX_BITS'(i))] != model_q[i+32'(valid_o)])
        words_match = 1'b0;
    end
  end

  always_comb begin
    assert (full);
    assert (comes_out);
    assert (stays);
    assert (no_overflow);
    assert (in_order);
    assert (counts_match);
    assert (indices_match);
    assert (words_match);
  end

endmodule

`default_nettype wire
