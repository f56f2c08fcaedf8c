// axi_read_proof: `axi_read` asks for the words of each command, in order, and for no more than its queue
// has room for; gives out the bytes of the command from its address on, the last word with last_o;
// loses no answer, and changes neither an address nor a word before it is taken. The memory answers
// what was asked, in order, whenever it likes.
//
// What a command gives is proved of one that is followed: any, since an input chooses it.
`default_nettype none

module axi_read_proof #(
    parameter int unsigned ADDR_WIDTH  = 13,
    parameter int unsigned DATA_WIDTH  = 16,
    parameter int unsigned BYTES_WIDTH = 3,
    parameter int unsigned MAX_BURST   = 2,
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
    input wire logic                   rlast_i,
    input wire logic                   follow_i  // the next command, if none is followed
);

  localparam int unsigned WORD_BYTES = DATA_WIDTH / 8;
  localparam int unsigned LANE_BITS = $clog2(WORD_BYTES);
  localparam int unsigned INDEX_WIDTH = ADDR_WIDTH - LANE_BITS;
  localparam int unsigned MARK_INDEX = $clog2(OUTSTANDING);
  localparam int unsigned QUEUE_INDEX = $clog2(DEPTH);
  localparam int unsigned N = 4;  // bits of a count; what is on its way and a command are less than 2^N

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

  // Bus words since the reset: asked for, answered, out of the queue; and for each burst on its way where it
  // ends. Counts wrap round, differences stay right.
  logic live_q = 1'b0;  // there was a reset
  logic [N-1:0] asked_q, answered_q, popped_q;
  logic [N-1:0] end_q[OUTSTANDING];
  logic [MARK_INDEX:0] first_burst_q, next_burst_q;
  wire asked = arvalid_o && arready_i;
  wire answered = rvalid_i && rready_o;
  wire popped = dut.word_valid && dut.word_ready;
  wire [N-1:0] asked_d = asked_q + (asked ? N'(arlen_o) + 1'b1 : '0);
  wire [N-1:0] owed = asked_q - answered_q;
  wire [MARK_INDEX:0] bursts = next_burst_q - first_burst_q;

  wire answers_what_was_asked = !rvalid_i
      || (owed != '0 && rlast_i == (answered_q + 1'b1 == end_q[first_burst_q[MARK_INDEX-1:0]]));
  always_comb assume (!live_q || answers_what_was_asked);

  logic held_q, address_held_q;  // the step before offered it, and nobody took it
  logic [DATA_WIDTH:0] held_word_q;
  logic [ADDR_WIDTH+7:0] held_address_q;

  always_ff @(posedge clk_i) begin
    live_q         <= live_q || !rst_ni;
    held_q         <= rst_ni && valid_o && !ready_i;
    held_word_q    <= {last_o, data_o};
    address_held_q <= rst_ni && arvalid_o && !arready_i;
    held_address_q <= {araddr_o, arlen_o};
    if (!rst_ni) begin
      asked_q       <= '0;
      answered_q    <= '0;
      popped_q      <= '0;
      first_burst_q <= '0;
      next_burst_q  <= '0;
    end else begin
      asked_q       <= asked_d;
      answered_q    <= answered_q + N'(answered);
      popped_q      <= popped_q + N'(popped);
      first_burst_q <= first_burst_q + (MARK_INDEX + 1)'(answered && rlast_i);
      next_burst_q  <= next_burst_q + (MARK_INDEX + 1)'(asked);
      if (asked) end_q[next_burst_q[MARK_INDEX-1:0]] <= asked_d;
    end
  end

  wire bus_form = arsize_o == 3'(LANE_BITS) && arburst_o == 2'b01;
  wire no_overflow = !live_q || !rvalid_i || (rready_o && dut.queue_ready && dut.marks_valid);
  wire no_answer_lost = !live_q || !idle_o || (owed == '0 && !valid_o && !arvalid_o);
  wire not_too_many = !live_q || 32'(bursts) <= OUTSTANDING;
  wire within_4_kb = !live_q || !arvalid_o
      || 32'(araddr_o[11:0]) + WORD_BYTES * (32'(arlen_o) + 1) <= 4096;
  wire address_stable = !live_q || !address_held_q || (arvalid_o && {araddr_o, arlen_o} == held_address_q);
  wire word_stable = !live_q || !held_q || (valid_o && {last_o, data_o} == held_word_q);
  // With nothing to wait for it goes on, and says idle.
  wire goes_on = !live_q || ((!idle_o || cmd_ready_o) && (popped_q == answered_q || valid_o || popped));
  wire idle_is_right = !live_q || idle_o == (asked_q == popped_q && !arvalid_o);

  // The command that is followed: the address, the lanes of its first and last byte, its bus words from
  // first_q on, its words; and how many of those it has given out.
  logic follow_q;
  logic [ADDR_WIDTH-1:0] addr_q;
  logic [LANE_BITS-1:0] last_lane_q;
  logic [N-1:0] first_q, bus_words_q, words_q, given_q;
  wire [LANE_BITS-1:0] lane = addr_q[LANE_BITS-1:0];
  wire [N-1:0] asked_of_it = asked_q - first_q;
  wire [N-1:0] popped_of_it = popped_q - first_q;
  wire being_asked = follow_q && asked_of_it < bus_words_q;
  wire at_head = follow_q && popped_of_it < bus_words_q;
  wire follow = follow_i && !follow_q && cmd_valid_i && cmd_ready_o && cmd_bytes_i != '0;
  wire [31:0] last_byte = 32'(cmd_addr_i[LANE_BITS-1:0]) + 32'(cmd_bytes_i) - 1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) follow_q <= 1'b0;
    else if (follow) follow_q <= 1'b1;
    else if (popped && popped_of_it + 1'b1 == bus_words_q) follow_q <= 1'b0;
    if (follow) begin
      addr_q      <= cmd_addr_i;
      last_lane_q <= last_byte[LANE_BITS-1:0];
      first_q     <= asked_d;
      bus_words_q <= N'(last_byte / WORD_BYTES + 1);
      words_q     <= N'((32'(cmd_bytes_i) + WORD_BYTES - 1) / WORD_BYTES);
      given_q     <= '0;
    end else if (at_head && valid_o && ready_i) begin
      given_q <= given_q + 1'b1;
    end
  end

  // In the memory, every byte of the command is different.
  function automatic logic [DATA_WIDTH-1:0] memory(input logic [N-1:0] word);
    for (int unsigned i = 0; i < WORD_BYTES; ++i) memory[8*i+:8] = 8'({word, LANE_BITS'(i)});
  endfunction

  wire memory_holds = !rvalid_i || !follow_q || answered_q - first_q >= bus_words_q
      || rdata_i == memory(answered_q);
  always_comb assume (!live_q || memory_holds);

  logic data_right;
  wire [LANE_BITS-1:0] last_valid = last_lane_q - lane;  // lane of the last byte in the last word

  always_comb begin
    data_right = 1'b1;
    for (int unsigned i = 0; i < WORD_BYTES; ++i) begin
      automatic logic [N+LANE_BITS-1:0] at = {first_q + given_q, LANE_BITS'(0)} + (N + LANE_BITS)'(lane) + (N + LANE_BITS)'(i);
      if ((given_q + 1'b1 != words_q || LANE_BITS'(i) <= last_valid) && data_o[8*i+:8] != 8'(at))
        data_right = 1'b0;
    end
  end

  wire bytes_in_order = !live_q || !at_head || !valid_o || data_right;
  wire last_is_last = !live_q || !at_head || !valid_o || last_o == (given_q + 1'b1 == words_q);
  wire none_missing = !live_q || !at_head || !popped || popped_of_it + 1'b1 != bus_words_q
      || (valid_o && given_q + 1'b1 == words_q);
  wire asks_in_order = !live_q || !being_asked || !arvalid_o
      || (araddr_o == {addr_q[ADDR_WIDTH-1:LANE_BITS] + INDEX_WIDTH'(asked_of_it), LANE_BITS'(0)}
          && arlen_o < 8'(MAX_BURST) && N'(arlen_o) < N'(bus_words_q - asked_of_it));
  wire asks_in_time = !live_q || !being_asked || 32'(bursts) == OUTSTANDING
      || 32'(N'(asked_q - popped_q)) + MAX_BURST > DEPTH || arvalid_o;

  // Invariants, without which induction starts in states that never are.
  wire credits = !live_q || (32'(dut.room_q) + 32'(N'(asked_q - popped_q)) == DEPTH
      && N'(answered_q - popped_q) <= N'(asked_q - popped_q));
  wire marks_match = !live_q || (32'(dut.marks.count_q) == 32'(bursts)
      && dut.marks.head_q == first_burst_q[MARK_INDEX-1:0] && dut.marks.tail_q == next_burst_q[MARK_INDEX-1:0]);
  wire queue_matches = !live_q || (32'(dut.queue.count_q) == 32'(N'(answered_q - popped_q))
      && dut.queue.head_q == popped_q[QUEUE_INDEX-1:0] && dut.queue.tail_q == answered_q[QUEUE_INDEX-1:0]);
  wire places = !live_q || !follow_q
      || (words_q != '0 && bus_words_q != '0 && 32'(bus_words_q) <= 2 ** BYTES_WIDTH / WORD_BYTES + 1
          && words_q == bus_words_q - N'(last_lane_q < lane)
          && (at_head || (given_q == '0 && N'(first_q - popped_q) <= N'(asked_q - popped_q))));
  wire rest_waits = !live_q || !being_asked
      || (32'(dut.bursts.words_q) == 32'(N'(bus_words_q - asked_of_it))
          && dut.bursts.index_q == addr_q[ADDR_WIDTH-1:LANE_BITS] + INDEX_WIDTH'(asked_of_it)
          && dut.bursts.start_q == lane && dut.bursts.end_q == last_lane_q);
  wire have = dut.gen_realign.have_q;
  wire flush = dut.gen_realign.flush_q;
  wire realigns = !live_q || !at_head
      || (popped_of_it == '0 ? !have && !flush && given_q == '0
          : have == (lane != '0) && given_q + N'(have) == popped_of_it + N'(flush)
              && (!have || flush || dut.gen_realign.before_q == memory(popped_q - 1'b1))
              && (!flush || (popped_of_it + 1'b1 == bus_words_q && last_lane_q >= lane && have)));
  wire nothing_kept = !live_q || asked_q != popped_q || dut.bursts_left || (!have && !flush);
  logic bursts_follow, marks_right, words_right;

  always_comb begin  // by slots of the queues: what is in one stays there
    automatic logic [N-1:0] begin_of = answered_q;
    bursts_follow = 32'(bursts) <= OUTSTANDING;
    marks_right = 1'b1;
    for (int unsigned i = 0; i < OUTSTANDING; ++i) begin
      automatic logic [MARK_INDEX-1:0] slot = MARK_INDEX'(32'(first_burst_q) + i);
      automatic logic [N-1:0] end_of = end_q[slot];
      automatic logic [N-1:0] its_begin = begin_of - first_q;
      automatic logic [N-1:0] its_end = end_of - first_q;
      automatic logic mark_last = dut.marks.words[slot][LANE_BITS+1];
      if ((MARK_INDEX + 1)'(i) < bursts) begin
        if (N'(end_of - begin_of - 1'b1) >= N'(MAX_BURST)) bursts_follow = 1'b0;
        if (follow_q && its_begin < bus_words_q
            && (its_end > bus_words_q
                || dut.marks.words[slot] != {its_end == bus_words_q, last_lane_q >= lane, lane}))
          marks_right = 1'b0;
        if (follow_q && its_begin[N-1] && !its_end[N-1] && (its_end != '0 || !mark_last)) marks_right = 1'b0;
        if (!dut.bursts_left && (MARK_INDEX + 1)'(i + 1) == bursts && !mark_last) marks_right = 1'b0;
        begin_of = end_of;
      end
    end
    if (begin_of != asked_q) bursts_follow = 1'b0;
  end

  always_comb begin
    words_right = 1'b1;
    for (int unsigned i = 0; i < DEPTH; ++i) begin
      automatic logic [N-1:0] at = {
        popped_q[N-1:QUEUE_INDEX] + (N - QUEUE_INDEX)'(QUEUE_INDEX'(i) < popped_q[QUEUE_INDEX-1:0]), QUEUE_INDEX'(i)
      };
      automatic logic [N-1:0] next = at + 1'b1;
      if (N'(at - popped_q) < N'(answered_q - popped_q)) begin
        if (follow_q && N'(at - first_q) < bus_words_q
            && dut.queue.words[i] != {N'(next - first_q) == bus_words_q, last_lane_q >= lane, lane, memory(at)})
          words_right = 1'b0;
        if (((follow_q && next == first_q) || (next == asked_q && !dut.bursts_left))
            && !dut.queue.words[i][DATA_WIDTH+LANE_BITS+1])
          words_right = 1'b0;
      end
    end
  end

  wire bursts_match = !live_q || bursts_follow;
  wire marks_followed = !live_q || marks_right;
  wire words_followed = !live_q || words_right;

  always_comb begin
    assert (bus_form);
    assert (no_overflow);
    assert (no_answer_lost);
    assert (not_too_many);
    assert (within_4_kb);
    assert (address_stable);
    assert (word_stable);
    assert (goes_on);
    assert (idle_is_right);
    assert (bytes_in_order);
    assert (last_is_last);
    assert (none_missing);
    assert (asks_in_order);
    assert (asks_in_time);
    assert (credits);
    assert (marks_match);
    assert (queue_matches);
    assert (places);
    assert (rest_waits);
    assert (realigns);
    assert (nothing_kept);
    assert (bursts_match);
    assert (marks_followed);
    assert (words_followed);
  end

endmodule

`default_nettype wire
