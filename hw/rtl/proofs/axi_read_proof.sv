// axi_read_proof: `axi_read` asks for no more words than its queue has room for, loses no answer, and
// changes neither an address nor a word before it is taken. The memory answers what was asked, in
// order, whenever it likes.
`default_nettype none

module axi_read_proof #(
    parameter int unsigned ADDR_WIDTH  = 13,
    parameter int unsigned DATA_WIDTH  = 16,
    parameter int unsigned BYTES_WIDTH = 6,
    parameter int unsigned MAX_BURST   = 4,
    parameter int unsigned OUTSTANDING = 2,
    parameter int unsigned DEPTH       = OUTSTANDING * MAX_BURST
) (
    input wire logic                   clk_i,
    input wire logic                   rst_ni,
    input wire logic                   cmd_valid_i,
    input wire logic [ADDR_WIDTH-1:0]  cmd_addr_i,
    input wire logic [BYTES_WIDTH-1:0] cmd_bytes_i,
    input wire logic                   ready_i,
    input wire logic                   arready_i,
    input wire logic                   rvalid_i,
    input wire logic [DATA_WIDTH-1:0]  rdata_i,
    input wire logic                   rlast_i
);

  localparam int unsigned WORD_BYTES = DATA_WIDTH / 8;
  localparam int unsigned MARK_INDEX = $clog2(OUTSTANDING);
  localparam int unsigned QUEUE_INDEX = $clog2(DEPTH);

  logic cmd_ready_o, valid_o, last_o, idle_o, arvalid_o, rready_o;
  logic [DATA_WIDTH-1:0] data_o;
  logic [ADDR_WIDTH-1:0] araddr_o;
  logic [7:0] arlen_o;
  logic [2:0] arsize_o;
  logic [1:0] arburst_o;

  axi_read #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .DATA_WIDTH(DATA_WIDTH),
      .BYTES_WIDTH(BYTES_WIDTH),
      .MAX_BURST(MAX_BURST),
      .OUTSTANDING(OUTSTANDING),
      .DEPTH(DEPTH)
  ) dut (
      .*
  );

  // The memory: the lengths of the bursts that it owes, oldest first, and the beat of the oldest.
  logic live_q = 1'b0;  // there was a reset
  logic [7:0] owed_q[OUTSTANDING];
  logic [7:0] bursts_q, beat_q;
  logic held_q, address_held_q;  // the step before offered it, and nobody took it
  logic [DATA_WIDTH-1:0] held_data_q;
  logic held_last_q;
  logic [ADDR_WIDTH-1:0] held_addr_q;
  logic [7:0] held_len_q;
  wire asked = arvalid_o && arready_i;
  wire answered = rvalid_i && rready_o;
  wire done = answered && rlast_i;
  wire [7:0] left = bursts_q - 8'(done);

  wire answers_what_was_asked = !rvalid_i || (bursts_q != '0 && rlast_i == (beat_q == owed_q[0]));
  always_comb assume (!live_q || answers_what_was_asked);

  always_ff @(posedge clk_i) begin
    live_q         <= live_q || !rst_ni;
    bursts_q       <= rst_ni ? left + 8'(asked) : '0;
    beat_q         <= !rst_ni || done ? '0 : beat_q + 8'(answered);
    held_q         <= rst_ni && valid_o && !ready_i;
    held_data_q    <= data_o;
    held_last_q    <= last_o;
    address_held_q <= rst_ni && arvalid_o && !arready_i;
    held_addr_q    <= araddr_o;
    held_len_q     <= arlen_o;
    for (int unsigned i = 0; i < OUTSTANDING; ++i) begin
      if (asked && 8'(i) == left) owed_q[i] <= arlen_o;
      else if (done && i + 1 < OUTSTANDING) owed_q[i] <= owed_q[(i+1)%OUTSTANDING];
    end
  end

  logic [15:0] owed;  // words
  logic owed_allowed;

  always_comb begin
    owed = '0;
    owed_allowed = 1'b1;
    for (int unsigned i = 0; i < OUTSTANDING; ++i) begin
      if (8'(i) < bursts_q) begin
        owed += 16'(owed_q[i]) + 16'd1;
        if (32'(owed_q[i]) >= MAX_BURST) owed_allowed = 1'b0;
      end
    end
    owed -= 16'(beat_q);
  end

  wire no_overflow = !live_q || !rvalid_i || (rready_o && dut.queue_ready && dut.marks_valid);
  wire credits = !live_q
      || 16'(dut.room_q) + 16'(dut.waiting) + owed == 16'(DEPTH) && 16'(dut.waiting) + owed <= 16'(DEPTH);
  wire no_answer_lost = !live_q || !idle_o || (owed == '0 && !valid_o && !arvalid_o);
  wire not_too_many = !live_q || 32'(bursts_q) <= OUTSTANDING;
  wire within_4_kb = !live_q || !arvalid_o
      || 32'(araddr_o[11:0]) + WORD_BYTES * (32'(arlen_o) + 1) <= 4096;
  wire address_stable = !live_q || !address_held_q
      || (arvalid_o && araddr_o == held_addr_q && arlen_o == held_len_q);
  wire word_stable = !live_q || !held_q || (valid_o && data_o == held_data_q && last_o == held_last_q);
  // Invariants, without which induction starts in states that never are.
  wire beats_match = !live_q || (owed_allowed && (bursts_q == '0 ? beat_q == '0 : beat_q <= owed_q[0]));
  wire marks_match = !live_q || (8'(dut.marks.count_q) == bursts_q
      && dut.marks.tail_q - dut.marks.head_q == MARK_INDEX'(bursts_q));
  wire queue_matches = !live_q
      || dut.queue.tail_q - dut.queue.head_q == QUEUE_INDEX'(dut.queue.count_q);

  always_comb begin
    assert (no_overflow);
    assert (credits);
    assert (no_answer_lost);
    assert (not_too_many);
    assert (within_4_kb);
    assert (address_stable);
    assert (word_stable);
    assert (beats_match);
    assert (marks_match);
    assert (queue_matches);
  end

endmodule

`default_nettype wire
