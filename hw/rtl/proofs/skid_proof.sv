// skid_proof: words leave `skid` in the order in which they came, none is lost and none comes twice.
`default_nettype none

module skid_proof #(
    parameter int unsigned WIDTH = 2
) (
    input wire logic             clk_i,
    input wire logic             rst_ni,
    input wire logic             valid_i,
    input wire logic [WIDTH-1:0] data_i,
    input wire logic             ready_i
);

  logic ready_o, valid_o;
  logic [WIDTH-1:0] data_o;

  skid #(.WIDTH(WIDTH)) dut (.*);

  // What is inside, oldest first, kept in another way.
  logic live_q = 1'b0;  // there was a reset
  logic [1:0] count_q;
  logic [WIDTH-1:0] model_q[2];
  logic held_q;  // the step before offered a word, and nobody took it
  logic [WIDTH-1:0] held_data_q;
  wire push = valid_i && ready_o;
  wire pop = valid_o && ready_i;
  wire [1:0] left = count_q - 2'(pop);

  always_ff @(posedge clk_i) begin
    live_q      <= live_q || !rst_ni;
    count_q     <= rst_ni ? left + 2'(push) : '0;
    held_q      <= rst_ni && valid_o && !ready_i;
    held_data_q <= data_o;
    if (pop) model_q[0] <= model_q[1];
    if (push) model_q[left[0]] <= data_i;
  end

  wire stable = !live_q || !held_q || (valid_o && data_o == held_data_q);
  wire counts = !live_q || (valid_o == (count_q != '0) && ready_o == (count_q != 2'd2));
  wire no_overflow = !live_q || count_q <= 2'd2;
  wire in_order = !live_q || !valid_o || data_o == model_q[0];
  // Invariants, without which induction starts in states that never are.
  wire spare_matches = !live_q || ready_o || dut.spare_q == model_q[1];

  always_comb begin
    assert (stable);
    assert (counts);
    assert (no_overflow);
    assert (in_order);
    assert (spare_matches);
  end

endmodule

`default_nettype wire
