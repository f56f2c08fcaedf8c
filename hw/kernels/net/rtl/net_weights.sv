// net_weights: the weights in the order in which they are used, those of up to 16 output channels at a time.
//
// A request is a tile's: all blocks of its group, from memory; or, where they fit on chip, once more those of
// the tile before. They are read ahead of their use, as far as there is room, those of the next instruction, too: a
// block of 16 channels in pieces, one through port 0, the next one through port 1 at the same time. Others use port 1,
// and what they read would wait behind weights for which there is no room: there is, before a piece is asked for.
// The group whose weights are used again keeps its place until the next one's first are read from the ring.
`default_nettype none

module net_weights #(
    parameter int unsigned ADDR_WIDTH = 64,
    parameter int unsigned DEPTH      = 4096, // vectors on chip
    parameter int unsigned PIECE      = 32,   // vectors that a port brings before it is the other one's turn
    parameter int unsigned PIECE_ALONE = 240  // of one channel; up to 15 of each of 16 channels are one piece
) (
    input  wire logic                       clk_i,
    input  wire logic                       rst_ni,
    input  wire logic [ADDR_WIDTH-1:0]      weights_i,
    input  wire logic                       resident_i,  // those in use: a group's fit, with a piece to spare
    input  wire logic                       ahead_i,     // requests are the next instruction's: through port 0 only,
    input  wire logic                       pause_i,     // and not while results need the memory
    output logic                            busy_o,
    // requests
    input  wire logic                       valid_i,
    output logic                            ready_o,
    input  wire logic                       again_i,
    input  wire logic [31:0]                at_i,
    input  wire logic [31:0]                taps_i,
    input  wire logic [3:0]                 skip_i,      // as many, and behind them as many that are not wanted; 0: all
    input  wire logic [11:0]                vectors_i,   // taps of all blocks, if they fit on chip
    input  wire logic                       alone_i,     // one output channel
    input  wire logic [15:0]                outs_i,      // of the group
    // what to read
    output logic [1:0]                      cmd_valid_o,
    input  wire logic [1:0]                 cmd_ready_i,
    output logic [ADDR_WIDTH-1:0]           cmd_addr_o,
    output logic [9:0]                      cmd_bytes_o,
    // what was read
    input  wire logic [1:0]                 valid_word_i,
    output logic [1:0]                      ready_word_o,
    input  wire logic [1:0][63:0]           word_i,
    input  wire logic                       last_word_i, // of port 0
    // vectors
    output logic                            valid_o,
    input  wire logic                       take_i,
    output logic [127:0]                    weights_o
);

  localparam int unsigned INDEX_BITS = $clog2(DEPTH);

  // Pieces are asked for, each with its place in the ring.
  typedef enum logic [1:0] {FREE, SIZE, ASK, REPEAT} ask_t;
  ask_t ask_q;
  logic [31:0] at_q, taps_q, rest_q;
  logic [11:0] vectors_q;
  logic [9:0] bytes_q;
  logic [15:0] left_q;
  logic [INDEX_BITS:0] end_q, base_q, index_q;  // vectors that were asked for, that nobody needs again, that were read
  logic [4:0] entries;
  logic [3:0] skip_q, entry_skip;
  logic port_q, fresh_q, alone_q, ahead_q, entry_ready, entry_valid, entry_again, entry_fresh, entry_port, entry_end;
  logic [11:0] entry_count;
  logic [1:0] blocks_ready, write_ends;
  wire last_block = alone_q || left_q <= 16'd16;
  wire [4:0] outs = alone_q ? 5'd1 : last_block ? left_q[4:0] : 5'd16;
  wire [8:0] most = alone_q ? 9'(PIECE_ALONE) : 9'(PIECE);
  logic last_piece_q;
  logic [8:0] piece_q;
  wire last_piece = rest_q <= 32'(most);
  wire [8:0] piece = last_piece ? rest_q[8:0] : most;
  wire port = port_q && outs == 5'd16;
  wire [INDEX_BITS:0] next_end = end_q + (INDEX_BITS + 1)'(piece_q);
  wire fits = (INDEX_BITS + 1)'(next_end - base_q) <= (INDEX_BITS + 1)'(DEPTH);
  wire asks = ask_q == ASK && !(ahead_q && pause_i) && entry_ready && blocks_ready[port] && fits;
  wire asked = asks && cmd_ready_i[port];

  assign ready_o     = ask_q == FREE;
  assign cmd_valid_o = {asks && port, asks && !port};
  assign cmd_addr_o  = weights_i + ADDR_WIDTH'(at_q);
  assign cmd_bytes_o = bytes_q;
  assign busy_o      = ask_q != FREE || entry_valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ask_q <= FREE;
    else begin
      unique case (ask_q)
        FREE: if (valid_i) ask_q <= again_i ? REPEAT : SIZE;
        SIZE: ask_q <= ASK;
        ASK: if (asked) ask_q <= last_piece_q && last_block ? FREE : SIZE;
        default: if (entry_ready) ask_q <= FREE;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    ahead_q <= ahead_i && (ahead_q || ask_q == FREE);
    if (ask_q == FREE) begin
      at_q      <= at_i;
      taps_q    <= taps_i;
      rest_q    <= taps_i;
      vectors_q <= vectors_i;
      alone_q   <= alone_i;
      skip_q    <= skip_i;
      left_q    <= outs_i;
      fresh_q   <= 1'b1;
    end
    if (ask_q == SIZE) begin
      bytes_q      <= 10'(piece * outs);
      piece_q      <= piece;
      last_piece_q <= last_piece;
    end
    if (asked) begin
      at_q    <= at_q + 32'(bytes_q);
      rest_q  <= last_piece_q ? taps_q : rest_q - 32'(most);
      if (last_piece_q) left_q <= left_q - 16'd16;
      fresh_q <= 1'b0;
      port_q  <= !port_q && !ahead_q;
      end_q   <= next_end;
    end
    if (!rst_ni) begin
      port_q <= 1'b0;
      end_q  <= '0;
    end
  end

  fifo #(
      .WIDTH(19),
      .DEPTH(16)
  ) pieces (
      .clk_i,
      .rst_ni,
      .valid_i(asked || ask_q == REPEAT),
      .ready_o(entry_ready),
      .data_i ({skip_q, ask_q == REPEAT, fresh_q, port, ask_q == REPEAT ? vectors_q : 12'(piece_q)}),
      .valid_o(entry_valid),
      .ready_i(entry_end),
      .data_o ({entry_skip, entry_again, entry_fresh, entry_port, entry_count}),
      .count_o(entries)
  );

  // What each port brings, and where it goes.
  logic [1:0] brings, writes, lasts;
  logic [1:0][8:0] write_taps, vector_q;
  logic [1:0][INDEX_BITS-1:0] write_at;
  logic [1:0][4:0] write_outs, write_by;
  logic [1:0][3:0] write_skip, write_tap_q;
  logic [1:0][3:0] waiting;

  for (genvar p = 0; p < 2; ++p) begin : gen_port
    fifo #(
        .WIDTH(18 + INDEX_BITS),
        .DEPTH(8)
    ) places (
        .clk_i,
        .rst_ni,
        .valid_i(asked && port == 1'(p)),
        .ready_o(blocks_ready[p]),
        .data_i ({skip_q, outs, end_q[INDEX_BITS-1:0], piece_q}),
        .valid_o(brings[p]),
        .ready_i(write_ends[p]),
        .data_o ({write_skip[p], write_outs[p], write_at[p], write_taps[p]}),
        .count_o(waiting[p])
    );

    assign write_by[p]   = write_skip[p] != '0 && write_tap_q[p] + 4'd1 == write_skip[p] ? {1'b0, write_skip[p]} + 5'd1 : 5'd1;
    assign lasts[p]      = vector_q[p] + 9'(write_by[p]) == write_taps[p];
    assign write_ends[p] = writes[p] && lasts[p];

    always_ff @(posedge clk_i) begin
      if (!rst_ni || write_ends[p]) vector_q[p] <= '0;
      else if (writes[p]) vector_q[p] <= vector_q[p] + 9'(write_by[p]);
      if (!rst_ni || (writes[p] && (write_by[p] != 5'd1 || write_skip[p] == '0))) write_tap_q[p] <= '0;
      else write_tap_q[p] <= write_tap_q[p] + 4'(writes[p]);
    end
  end

  // Port 0: from words to vectors of so many bytes. Port 1: two words each; it goes first.
  logic [191:0] bytes_waiting_q;
  logic [4:0] count_q;
  logic ended_q, half_q;  // the block's last word is here; half a vector is
  logic [63:0] low_q;
  wire shift = writes[0];
  wire [4:0] gone = write_by[0] != 5'd1 ? write_by[0] : write_outs[0];  // of one channel where some are skipped
  wire [4:0] kept = shift ? count_q - gone : count_q;
  wire insert = valid_word_i[0] && ready_word_o[0];
  wire [191:0] shifted = shift ? bytes_waiting_q >> {gone, 3'b0} : bytes_waiting_q;

  assign ready_word_o[0] = brings[0] && !ended_q && kept <= 5'd16;
  assign ready_word_o[1] = brings[1];
  assign writes[1] = half_q && valid_word_i[1];
  // A vector of one channel has those behind it, too, as far as there are any.
  assign writes[0] = brings[0] && count_q >= (write_outs[0] == 5'd1 && !ended_q ? 5'd16 : write_outs[0]) && !writes[1];

  always_ff @(posedge clk_i) begin
    if (!rst_ni || write_ends[0]) begin
      count_q <= '0;
      ended_q <= 1'b0;
    end else begin
      count_q <= kept + (insert ? 5'd8 : 5'd0);
      ended_q <= ended_q || (insert && last_word_i);
    end
    if (!rst_ni) half_q <= 1'b0;
    else if (valid_word_i[1] && ready_word_o[1]) half_q <= !half_q;
  end

  always_ff @(posedge clk_i) begin
    bytes_waiting_q <= insert ? shifted & ~({192{1'b1}} << {kept, 3'b0}) | 192'(word_i[0]) << {kept, 3'b0} : shifted;
    if (!half_q) low_q <= word_i[1];
  end

  // The ring: written block by block, read in order, or again from the group's begin.
  logic [127:0] ring[DEPTH];
  logic [127:0] read_q;
  logic read_valid_q, begun_q;
  logic [11:0] done_q;
  logic [1:0][INDEX_BITS:0] there_q;  // vectors of each port that were not read yet
  wire [INDEX_BITS:0] index = !begun_q && entry_again ? base_q : index_q;
  logic [3:0] tap_q;
  wire skips = entry_skip != '0 && tap_q + 4'd1 == entry_skip;
  wire [4:0] by = skips ? {1'b0, entry_skip} + 5'd1 : 5'd1;
  wire step = entry_valid && (entry_again || there_q[entry_port] >= (INDEX_BITS + 1)'(by)) && (!read_valid_q || take_i);
  wire [INDEX_BITS-1:0] write_index = (writes[1] ? write_at[1] : write_at[0]) + INDEX_BITS'(writes[1] ? vector_q[1] : vector_q[0]);
  wire [127:0] vector = writes[1] ? {word_i[1], low_q} : bytes_waiting_q[127:0];

  assign valid_o   = read_valid_q;
  assign weights_o = read_q;
  assign entry_end = step && done_q + 12'(by) == entry_count;

  always_ff @(posedge clk_i) begin
    if (writes != '0) ring[write_index] <= vector;
    if (step) read_q <= ring[index[INDEX_BITS-1:0]];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_valid_q <= 1'b0;
      begun_q      <= 1'b0;
      done_q       <= '0;
      tap_q        <= '0;
      index_q      <= '0;
      base_q       <= '0;
      there_q      <= '0;
    end else begin
      read_valid_q <= step || (read_valid_q && !take_i);
      if (step) begin
        index_q <= index + (INDEX_BITS + 1)'(by);
        begun_q <= !entry_end;
        done_q  <= entry_end ? '0 : done_q + 12'(by);
        tap_q   <= skips || entry_skip == '0 ? '0 : tap_q + 1'b1;
      end
      if (step && !begun_q && entry_fresh && !entry_again) base_q <= index_q;
      else if (step && !resident_i) base_q <= index + (INDEX_BITS + 1)'(by);
      for (int unsigned p = 0; p < 2; ++p) begin
        there_q[p] <= there_q[p] + (INDEX_BITS + 1)'(writes[p] ? write_by[p] : '0)
            - (INDEX_BITS + 1)'(step && !entry_again && entry_port == 1'(p) ? by : '0);
      end
    end
  end

  wire unused = &{1'b0, entries, waiting, write_outs[1]};

endmodule

`default_nettype wire
