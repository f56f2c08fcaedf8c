// axi_write_proof: `axi_write` writes the words of the stream to the bytes of each command and to no others,
// in exactly the words of each burst and none before its address; takes the words of a command and no
// more; changes nothing before it is taken, and says idle when every burst has been answered. The
// memory takes addresses and words whenever it likes, and answers a burst after its last word.
//
// What a command writes is proved of one that is followed: any, since an input chooses it.
`default_nettype none

module axi_write_proof #(
    parameter int unsigned ADDR_WIDTH  = 13,
    parameter int unsigned DATA_WIDTH  = 32,
    parameter int unsigned BYTES_WIDTH = 4,
    parameter int unsigned MAX_BURST   = 2,
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
    input wire logic                   bvalid_i,
    input wire logic                   follow_i  // the next command, if none is followed
);

  localparam int unsigned WORD_BYTES = DATA_WIDTH / 8;
  localparam int unsigned LANE_BITS = $clog2(WORD_BYTES);
  localparam int unsigned INDEX_WIDTH = ADDR_WIDTH - LANE_BITS;
  localparam int unsigned MARK_INDEX = $clog2(OUTSTANDING);
  localparam int unsigned N = 4;  // bits of a count; what is on its way and a command are less than 2^N

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

  // Bus words since the reset: whose address went out, and sent; for each burst whose words are missing where
  // it ends; and how many whole bursts wait for their answer. Counts wrap round, differences stay right.
  logic live_q = 1'b0;  // there was a reset
  logic [N-1:0] asked_q, sent_q;
  logic [N-1:0] end_q[OUTSTANDING];
  logic [MARK_INDEX:0] first_burst_q, next_burst_q;
  logic [7:0] whole_q;
  wire asked = awvalid_o && awready_i;
  wire sent = wvalid_o && wready_i;
  wire done = sent && wlast_o;
  wire answered = bvalid_i && bready_o;
  wire [N-1:0] asked_d = asked_q + (asked ? N'(awlen_o) + 1'b1 : '0);
  wire [MARK_INDEX:0] open = next_burst_q - first_burst_q;

  logic offered_q, address_held_q, word_held_q;  // the step before offered it, and nobody took it
  logic [DATA_WIDTH-1:0] offered_data_q;
  logic [ADDR_WIDTH+7:0] held_address_q;
  logic [DATA_WIDTH+WORD_BYTES:0] held_word_q;

  wire answers_whole_bursts = !bvalid_i || whole_q != '0;
  wire stream_stable = !offered_q || (valid_i && data_i == offered_data_q);
  always_comb begin
    assume (!live_q || answers_whole_bursts);
    assume (!live_q || stream_stable);
  end

  always_ff @(posedge clk_i) begin
    live_q         <= live_q || !rst_ni;
    offered_q      <= rst_ni && valid_i && !ready_o;
    offered_data_q <= data_i;
    address_held_q <= rst_ni && awvalid_o && !awready_i;
    held_address_q <= {awaddr_o, awlen_o};
    word_held_q    <= rst_ni && wvalid_o && !wready_i;
    held_word_q    <= {wdata_o, wstrb_o, wlast_o};
    if (!rst_ni) begin
      asked_q       <= '0;
      sent_q        <= '0;
      first_burst_q <= '0;
      next_burst_q  <= '0;
      whole_q       <= '0;
    end else begin
      asked_q       <= asked_d;
      sent_q        <= sent_q + N'(sent);
      first_burst_q <= first_burst_q + (MARK_INDEX + 1)'(done);
      next_burst_q  <= next_burst_q + (MARK_INDEX + 1)'(asked);
      whole_q       <= whole_q + 8'(done) - 8'(answered);
      if (asked) end_q[next_burst_q[MARK_INDEX-1:0]] <= asked_d;
    end
  end

  wire bus_form = awsize_o == 3'(LANE_BITS) && awburst_o == 2'b01 && bready_o;
  wire address_first = !live_q || !wvalid_o || open != '0;
  wire last_is_last = !live_q || !wvalid_o || wlast_o == (sent_q + 1'b1 == end_q[first_burst_q[MARK_INDEX-1:0]]);
  wire not_too_many = !live_q || 32'(open) + 32'(whole_q) <= OUTSTANDING;
  wire no_answer_lost = !live_q || !idle_o || (open == '0 && whole_q == '0 && !awvalid_o);
  wire within_4_kb = !live_q || !awvalid_o
      || 32'(awaddr_o[11:0]) + WORD_BYTES * (32'(awlen_o) + 1) <= 4096;
  wire address_stable = !live_q || !address_held_q || (awvalid_o && {awaddr_o, awlen_o} == held_address_q);
  wire word_stable = !live_q || !word_held_q || (wvalid_o && {wdata_o, wstrb_o, wlast_o} == held_word_q);
  // With nothing to wait for it goes on, and says idle.
  wire goes_on = !live_q || ((!idle_o || cmd_ready_o) && (open == '0 || !valid_i || wvalid_o)
      && (!ready_o || !valid_i || sent));
  wire idle_is_right = !live_q || idle_o == (open == '0 && whole_q == '0 && !awvalid_o);

  // The command that is followed: the address, the lanes of its first and last byte, its bus words from
  // first_q on, its words; and how many of those it has taken.
  logic follow_q;
  logic [ADDR_WIDTH-1:0] addr_q;
  logic [LANE_BITS-1:0] last_lane_q;
  logic [N-1:0] first_q, bus_words_q, words_q, taken_q;
  wire [LANE_BITS-1:0] lane = addr_q[LANE_BITS-1:0];
  wire [N-1:0] asked_of_it = asked_q - first_q;
  wire [N-1:0] sent_of_it = sent_q - first_q;
  wire being_asked = follow_q && asked_of_it < bus_words_q;
  wire at_head = follow_q && sent_of_it < bus_words_q;
  wire taken = valid_i && ready_o;
  wire follow = follow_i && !follow_q && cmd_valid_i && cmd_ready_o && cmd_bytes_i != '0;
  wire [31:0] last_byte = 32'(cmd_addr_i[LANE_BITS-1:0]) + 32'(cmd_bytes_i) - 1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) follow_q <= 1'b0;
    else if (follow) follow_q <= 1'b1;
    else if (sent && sent_of_it + 1'b1 == bus_words_q) follow_q <= 1'b0;
    if (follow) begin
      addr_q      <= cmd_addr_i;
      last_lane_q <= last_byte[LANE_BITS-1:0];
      first_q     <= asked_d;
      bus_words_q <= N'(last_byte / WORD_BYTES + 1);
      words_q     <= N'((32'(cmd_bytes_i) + WORD_BYTES - 1) / WORD_BYTES);
      taken_q     <= '0;
    end else if (at_head && taken) begin
      taken_q <= taken_q + 1'b1;
    end
  end

  // Every byte of the stream that belongs to the command is different: its number.
  function automatic logic [DATA_WIDTH-1:0] stream(input logic [N-1:0] word);
    for (int unsigned i = 0; i < WORD_BYTES; ++i) stream[8*i+:8] = 8'({word, LANE_BITS'(i)});
  endfunction

  wire stream_holds = !valid_i || !at_head || taken_q == words_q || data_i == stream(taken_q);
  always_comb assume (!live_q || stream_holds);

  logic strobes_right, data_right;
  wire [N-1:0] number = sent_of_it;

  always_comb begin
    strobes_right = 1'b1;
    data_right = 1'b1;
    for (int unsigned i = 0; i < WORD_BYTES; ++i) begin
      automatic logic written = (number != '0 || LANE_BITS'(i) >= lane)
          && (number + 1'b1 != bus_words_q || LANE_BITS'(i) <= last_lane_q);
      automatic logic [N+LANE_BITS-1:0] byte_number =
          {number, LANE_BITS'(i)} - (N + LANE_BITS)'(lane);
      if (wstrb_o[i] != written) strobes_right = 1'b0;
      if (written && wdata_o[8*i+:8] != 8'(byte_number)) data_right = 1'b0;
    end
  end

  wire strobes_match = !live_q || !at_head || !wvalid_o || strobes_right;
  wire bytes_in_order = !live_q || !at_head || !wvalid_o || data_right;
  wire takes_its_words = !live_q || !at_head || (sent && sent_of_it + 1'b1 == bus_words_q
      ? taken_q + N'(taken) == words_q : !taken || taken_q < words_q);
  wire sends_the_rest = !live_q || !at_head || open == '0 || taken_q != words_q || wvalid_o;
  wire asks_in_order = !live_q || !being_asked || !awvalid_o
      || (awaddr_o == {addr_q[ADDR_WIDTH-1:LANE_BITS] + INDEX_WIDTH'(asked_of_it), LANE_BITS'(0)}
          && awlen_o < 8'(MAX_BURST) && N'(awlen_o) < N'(bus_words_q - asked_of_it));
  wire asks_in_time = !live_q || !being_asked || 32'(open) + 32'(whole_q) == OUTSTANDING || awvalid_o;

  // Invariants, without which induction starts in states that never are.
  wire answers_match = !live_q || 32'(dut.unanswered_q) == 32'(open) + 32'(whole_q);
  wire marks_match = !live_q || (32'(dut.marks.count_q) == 32'(open)
      && dut.marks.head_q == first_burst_q[MARK_INDEX-1:0] && dut.marks.tail_q == next_burst_q[MARK_INDEX-1:0]);
  wire places = !live_q || !follow_q
      || (words_q != '0 && bus_words_q != '0 && 32'(bus_words_q) <= 2 ** BYTES_WIDTH / WORD_BYTES + 1
          && words_q == bus_words_q - N'(last_lane_q < lane)
          && (at_head || (taken_q == '0 && N'(first_q - sent_q) <= N'(asked_q - sent_q))));
  wire rest_waits = !live_q || !being_asked
      || (32'(dut.bursts.words_q) == 32'(N'(bus_words_q - asked_of_it))
          && dut.bursts.index_q == addr_q[ADDR_WIDTH-1:LANE_BITS] + INDEX_WIDTH'(asked_of_it)
          && dut.bursts.start_q == lane && dut.bursts.end_q == last_lane_q);
  wire realigns = !live_q || !at_head
      || (dut.first_q == (sent_of_it == '0) && taken_q == sent_of_it
          && (sent_of_it == '0 || dut.gen_realign.before_q == stream(taken_q - 1'b1)));
  wire begins = !live_q || asked_q != sent_q || dut.bursts_left || dut.first_q;
  logic bursts_follow, marks_right;

  always_comb begin  // by slots of the queue: what is in one stays there
    automatic logic [N-1:0] begin_of = sent_q;
    bursts_follow = 32'(open) <= OUTSTANDING;
    marks_right = 1'b1;
    for (int unsigned i = 0; i < OUTSTANDING; ++i) begin
      automatic logic [MARK_INDEX-1:0] slot = MARK_INDEX'(32'(first_burst_q) + i);
      automatic logic [N-1:0] end_of = end_q[slot];
      automatic logic [N-1:0] left = end_of - begin_of;
      automatic logic [N-1:0] its_begin = begin_of - first_q;
      automatic logic [N-1:0] its_end = end_of - first_q;
      automatic logic mark_last = dut.marks.words[slot][8+2*LANE_BITS];
      automatic logic [7:0] mark_len = dut.marks.words[slot][2*LANE_BITS+:8];
      if ((MARK_INDEX + 1)'(i) < open) begin
        if (left == '0 || left > N'(MAX_BURST)
            || mark_len != 8'(left) - 8'd1 + (i == 0 ? dut.beat_q : 8'd0))
          bursts_follow = 1'b0;
        if (follow_q && its_begin < bus_words_q && (its_end > bus_words_q
            || mark_last != (its_end == bus_words_q) || dut.marks.words[slot][0+:2*LANE_BITS] != {lane, last_lane_q}))
          marks_right = 1'b0;
        if (follow_q && its_begin[N-1] && !its_end[N-1] && (its_end != '0 || !mark_last)) marks_right = 1'b0;
        if (!dut.bursts_left && (MARK_INDEX + 1)'(i + 1) == open && !mark_last) marks_right = 1'b0;
        begin_of = end_of;
      end
    end
    if (begin_of != asked_q) bursts_follow = 1'b0;
    if (open == '0 && dut.beat_q != '0) bursts_follow = 1'b0;
  end

  wire bursts_match = !live_q || bursts_follow;
  wire marks_followed = !live_q || marks_right;

  always_comb begin
    assert (bus_form);
    assert (address_first);
    assert (last_is_last);
    assert (not_too_many);
    assert (no_answer_lost);
    assert (within_4_kb);
    assert (address_stable);
    assert (word_stable);
    assert (goes_on);
    assert (idle_is_right);
    assert (strobes_match);
    assert (bytes_in_order);
    assert (takes_its_words);
    assert (sends_the_rest);
    assert (asks_in_order);
    assert (asks_in_time);
    assert (answers_match);
    assert (marks_match);
    assert (places);
    assert (rest_waits);
    assert (realigns);
    assert (begins);
    assert (bursts_match);
    assert (marks_followed);
  end

endmodule

`default_nettype wire
