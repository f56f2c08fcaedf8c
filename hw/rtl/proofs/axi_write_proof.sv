// axi_write_proof: `axi_write` sends exactly the words of each burst and none before its address, changes
// nothing before it is taken, and says idle only when every burst has been answered. The memory takes
// addresses and words whenever it likes, and answers a burst after its last word.
`default_nettype none

module axi_write_proof #(
    parameter int unsigned ADDR_WIDTH  = 13,
    parameter int unsigned DATA_WIDTH  = 16,
    parameter int unsigned BYTES_WIDTH = 6,
    parameter int unsigned MAX_BURST   = 4,
    parameter int unsigned OUTSTANDING = 2
) (
    input wire logic                   clk_i,
    input wire logic                   rst_ni,
    input wire logic                   cmd_valid_i,
    input wire logic [ADDR_WIDTH-1:0]  cmd_addr_i,
    input wire logic [BYTES_WIDTH-1:0] cmd_bytes_i,
    input wire logic                   valid_i,
    input wire logic [DATA_WIDTH-1:0]  data_i,
    input wire logic                   awready_i,
    input wire logic                   wready_i,
    input wire logic                   bvalid_i
);

  localparam int unsigned WORD_BYTES = DATA_WIDTH / 8;
  localparam int unsigned MARK_INDEX = $clog2(OUTSTANDING);

  logic cmd_ready_o, ready_o, idle_o, awvalid_o, wvalid_o, wlast_o, bready_o;
  logic [ADDR_WIDTH-1:0] awaddr_o;
  logic [7:0] awlen_o;
  logic [2:0] awsize_o;
  logic [1:0] awburst_o;
  logic [DATA_WIDTH-1:0] wdata_o;
  logic [WORD_BYTES-1:0] wstrb_o;

  axi_write #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .DATA_WIDTH(DATA_WIDTH),
      .BYTES_WIDTH(BYTES_WIDTH),
      .MAX_BURST(MAX_BURST),
      .OUTSTANDING(OUTSTANDING)
  ) dut (
      .*
  );

  // The memory: lengths of the bursts whose words are missing, oldest first, the beat of the oldest, and
  // how many whole bursts wait for their answer.
  logic live_q = 1'b0;  // there was a reset
  logic [7:0] lengths_q[OUTSTANDING];
  logic [7:0] open_q, beat_q, whole_q;
  logic offered_q, address_held_q, word_held_q;  // the step before offered it, and nobody took it
  logic [DATA_WIDTH-1:0] offered_data_q, held_data_q;
  logic [WORD_BYTES-1:0] held_strb_q;
  logic held_last_q;
  logic [ADDR_WIDTH-1:0] held_addr_q;
  logic [7:0] held_len_q;
  wire asked = awvalid_o && awready_i;
  wire sent = wvalid_o && wready_i;
  wire done = sent && wlast_o;
  wire answered = bvalid_i && bready_o;
  wire [7:0] left = open_q - 8'(done);

  wire answers_whole_bursts = !bvalid_i || whole_q != '0;
  wire stream_stable = !offered_q || (valid_i && data_i == offered_data_q);
  always_comb begin
    assume (!live_q || answers_whole_bursts);
    assume (!live_q || stream_stable);
  end

  always_ff @(posedge clk_i) begin
    live_q         <= live_q || !rst_ni;
    open_q         <= rst_ni ? left + 8'(asked) : '0;
    beat_q         <= !rst_ni || done ? '0 : beat_q + 8'(sent);
    whole_q        <= rst_ni ? whole_q + 8'(done) - 8'(answered) : '0;
    offered_q      <= rst_ni && valid_i && !ready_o;
    offered_data_q <= data_i;
    address_held_q <= rst_ni && awvalid_o && !awready_i;
    held_addr_q    <= awaddr_o;
    held_len_q     <= awlen_o;
    word_held_q    <= rst_ni && wvalid_o && !wready_i;
    held_data_q    <= wdata_o;
    held_strb_q    <= wstrb_o;
    held_last_q    <= wlast_o;
    for (int unsigned i = 0; i < OUTSTANDING; ++i) begin
      if (asked && 8'(i) == left) lengths_q[i] <= awlen_o;
      else if (done && i + 1 < OUTSTANDING) lengths_q[i] <= lengths_q[(i+1)%OUTSTANDING];
    end
  end

  wire address_first = !live_q || !wvalid_o || open_q != '0;
  wire last_is_last = !live_q || !wvalid_o || wlast_o == (beat_q == lengths_q[0]);
  wire not_too_many = !live_q || 32'(open_q) + 32'(whole_q) <= OUTSTANDING;
  wire no_answer_lost = !live_q || !idle_o || (open_q == '0 && whole_q == '0 && !awvalid_o);
  wire within_4_kb = !live_q || !awvalid_o
      || 32'(awaddr_o[11:0]) + WORD_BYTES * (32'(awlen_o) + 1) <= 4096;
  wire address_stable = !live_q || !address_held_q
      || (awvalid_o && awaddr_o == held_addr_q && awlen_o == held_len_q);
  wire word_stable = !live_q || !word_held_q
      || (wvalid_o && wdata_o == held_data_q && wstrb_o == held_strb_q && wlast_o == held_last_q);
  // Invariants, without which induction starts in states that never are.
  wire answers_match = !live_q || 8'(dut.unanswered_q) == open_q + whole_q;
  wire beats_match = !live_q
      || (beat_q == dut.beat_q && (open_q == '0 ? beat_q == '0 : beat_q <= lengths_q[0]));
  wire marks_match = !live_q || (8'(dut.marks.count_q) == open_q
      && dut.marks.tail_q - dut.marks.head_q == MARK_INDEX'(open_q));
  localparam int unsigned LENGTH_AT = 2 * $clog2(WORD_BYTES);  // of a mark: above the two lanes
  logic lengths_match;

  always_comb begin
    lengths_match = 1'b1;
    for (int unsigned i = 0; i < OUTSTANDING; ++i) begin
      if (live_q && 8'(i) < open_q
          && dut.marks.words[MARK_INDEX'(32'(dut.marks.head_q)+i)][LENGTH_AT+:8] != lengths_q[i])
        lengths_match = 1'b0;
    end
  end

  always_comb begin
    assert (address_first);
    assert (last_is_last);
    assert (not_too_many);
    assert (no_answer_lost);
    assert (within_4_kb);
    assert (address_stable);
    assert (word_stable);
    assert (answers_match);
    assert (beats_match);
    assert (marks_match);
    assert (lengths_match);
  end

endmodule

`default_nettype wire
