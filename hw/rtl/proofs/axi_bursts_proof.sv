// axi_bursts_proof: the bursts of `axi_bursts` follow each other from the first byte of a command to its
// last, none crosses a 4 KB boundary, and one that is offered stays as it is.
`default_nettype none

module axi_bursts_proof #(
    parameter int unsigned ADDR_WIDTH  = 20,
    parameter int unsigned DATA_WIDTH  = 64,
    parameter int unsigned BYTES_WIDTH = 16,
    parameter int unsigned MAX_BURST   = 16
) (
    input wire logic                   clk_i,
    input wire logic                   rst_ni,
    input wire logic                   cmd_valid_i,
    input wire logic [ADDR_WIDTH-1:0]  cmd_addr_i,
    input wire logic [BYTES_WIDTH-1:0] cmd_bytes_i,
    input wire logic                   burst_ready_i
);

  localparam int unsigned WORD_BYTES = DATA_WIDTH / 8;
  localparam int unsigned LANE_BITS = $clog2(WORD_BYTES);
  localparam int unsigned INDEX_WIDTH = ADDR_WIDTH - LANE_BITS;

  logic cmd_ready_o, burst_valid_o, burst_last_o, busy_o;
  logic [ADDR_WIDTH-1:0] burst_addr_o;
  logic [7:0] burst_len_o;
  logic [LANE_BITS-1:0] burst_start_o, burst_end_o;

  axi_bursts #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .DATA_WIDTH(DATA_WIDTH),
      .BYTES_WIDTH(BYTES_WIDTH),
      .MAX_BURST(MAX_BURST)
  ) dut (
      .*
  );

  // A command ends within the address space.
  wire [ADDR_WIDTH:0] last_byte = (ADDR_WIDTH + 1)'(cmd_addr_i) + (ADDR_WIDTH + 1)'(cmd_bytes_i) - 1'b1;
  wire fits = cmd_bytes_i == '0 || !last_byte[ADDR_WIDTH];
  always_comb assume (fits);

  // The command as byte addresses, and the word that the next burst has to begin with.
  logic live_q = 1'b0;  // there was a reset
  logic busy_q;
  logic [ADDR_WIDTH-1:0] first_q, last_q;
  logic [INDEX_WIDTH-1:0] next_q;
  logic held_q;  // the step before offered a burst, and nobody took it
  logic [ADDR_WIDTH-1:0] held_addr_q;
  logic [7:0] held_len_q;
  wire taken = burst_valid_o && burst_ready_i;
  wire accepted = cmd_valid_i && cmd_ready_o;
  wire [INDEX_WIDTH-1:0] last_word = last_q[ADDR_WIDTH-1:LANE_BITS];
  wire [INDEX_WIDTH:0] burst_end = (INDEX_WIDTH + 1)'(burst_addr_o[ADDR_WIDTH-1:LANE_BITS])
      + (INDEX_WIDTH + 1)'(burst_len_o);  // its last word

  always_ff @(posedge clk_i) begin
    live_q      <= live_q || !rst_ni;
    held_q      <= rst_ni && burst_valid_o && !burst_ready_i;
    held_addr_q <= burst_addr_o;
    held_len_q  <= burst_len_o;
    if (!rst_ni) busy_q <= 1'b0;
    else if (accepted) busy_q <= cmd_bytes_i != '0;
    else if (taken && burst_end >= {1'b0, last_word}) busy_q <= 1'b0;
    if (accepted) begin
      first_q <= cmd_addr_i;
      last_q  <= last_byte[ADDR_WIDTH-1:0];
      next_q  <= cmd_addr_i[ADDR_WIDTH-1:LANE_BITS];
    end else if (taken) begin
      next_q <= next_q + INDEX_WIDTH'(burst_len_o) + 1'b1;
    end
  end

  wire none_missing = !live_q || burst_valid_o == busy_q;
  wire in_sequence = !live_q || !burst_valid_o || burst_addr_o == {next_q, LANE_BITS'(0)};
  wire not_too_far = !live_q || !burst_valid_o || burst_end <= {1'b0, last_word};
  wire last_is_last = !live_q || !burst_valid_o || burst_last_o == (burst_end == {1'b0, last_word});
  wire lanes = !live_q || !burst_valid_o
      || (burst_start_o == first_q[LANE_BITS-1:0] && burst_end_o == last_q[LANE_BITS-1:0]);
  wire length = !live_q || !burst_valid_o || 32'(burst_len_o) < MAX_BURST;
  wire within_4_kb = !live_q || !burst_valid_o
      || 32'(burst_addr_o[11:0]) + WORD_BYTES * (32'(burst_len_o) + 1) <= 4096;
  wire stable = !live_q || !held_q
      || (burst_valid_o && burst_addr_o == held_addr_q && burst_len_o == held_len_q);
  wire commands_wait = !live_q || !accepted || !busy_q || (taken && burst_last_o);
  wire none_waits = !live_q || cmd_ready_o == (!busy_q || (taken && burst_last_o));
  // An invariant, without which induction starts in states that never are.
  wire words_left = !live_q || (busy_q
      ? 32'(dut.words_q) == 32'(last_word) - 32'(next_q) + 1 && next_q <= last_word : dut.words_q == '0);

  always_comb begin
    assert (none_missing);
    assert (in_sequence);
    assert (not_too_far);
    assert (last_is_last);
    assert (lanes);
    assert (length);
    assert (within_4_kb);
    assert (stable);
    assert (commands_wait);
    assert (none_waits);
    assert (words_left);
  end

endmodule

`default_nettype wire
