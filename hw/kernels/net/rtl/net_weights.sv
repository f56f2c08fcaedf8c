// net_weights: the weights in the order in which they are used, those of up to 16 output channels at a time.
//
// A request is a tile's: all blocks of its group, from memory; or, where they fit on chip, once more those of
// the tile before. They are read ahead of their use, as far as there is room: a block of 16 channels in pieces, one
// through port 0, the next one through port 1 at the same time, if it may be used.
`default_nettype none

module net_weights #(
    parameter int unsigned ADDR_WIDTH = 64,
    parameter int unsigned DEPTH      = 4096, // vectors on chip
    parameter int unsigned PIECE      = 32    // vectors that a port brings before it is the other one's turn
) (
    input  wire logic                       clk_i,
    input  wire logic                       rst_ni,
    input  wire logic                       start_i,     // of an instruction
    input  wire logic [ADDR_WIDTH-1:0]      weights_i,
    input  wire logic                       alone_i,
    input  wire logic                       resident_i,  // a group's fit, with one to spare
    input  wire logic [15:0]                outs_i,      // of the group
    input  wire logic                       both_i,      // port 1 may be used
    output logic                            busy_o,
    // requests
    input  wire logic                       valid_i,
    output logic                            ready_o,
    input  wire logic                       again_i,
    input  wire logic [31:0]                at_i,
    input  wire logic [31:0]                taps_i,
    input  wire logic [31:0]                vectors_i,   // taps of all blocks
    // what to read
    output logic [1:0]                      cmd_valid_o,
    input  wire logic [1:0]                 cmd_ready_i,
    output logic [ADDR_WIDTH-1:0]           cmd_addr_o,
    output logic [31:0]                     cmd_bytes_o,
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

  // Pieces are asked for, each with its place in the ring. A place that comes within the ring is free soon.
  typedef enum logic [1:0] {FREE, SIZE, ASK, REPEAT} ask_t;
  ask_t ask_q;
  logic [31:0] at_q, taps_q, rest_q, vectors_q, bytes_q, end_q;
  logic [15:0] left_q;
  logic [31:0] base_q, index_q;  // vectors that were read from the ring, at the group's begin and now
  logic [4:0] entries;
  logic port_q, fresh_q, entry_ready, entry_valid, entry_again, entry_fresh, entry_port, entry_end;
  logic [31:0] entry_count;
  logic [1:0] blocks_ready, write_ends;
  wire last_block = alone_i || left_q <= 16'd16;
  wire [4:0] outs = alone_i ? 5'd1 : last_block ? left_q[4:0] : 5'd16;
  wire last_piece = outs != 5'd16 || rest_q <= 32'(PIECE);
  wire [31:0] piece = last_piece ? rest_q : 32'(PIECE);
  wire port = port_q && outs == 5'd16;
  wire [31:0] floor = resident_i ? base_q : index_q;
  wire asks = ask_q == ASK && entry_ready && blocks_ready[port] && end_q - floor < 32'(DEPTH);
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
        ASK: if (asked) ask_q <= last_piece && last_block ? FREE : SIZE;
        default: if (entry_ready) ask_q <= FREE;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (ask_q == FREE) begin
      at_q      <= at_i;
      taps_q    <= taps_i;
      rest_q    <= taps_i;
      vectors_q <= vectors_i;
      left_q    <= outs_i;
      fresh_q   <= 1'b1;
    end
    if (ask_q == SIZE) bytes_q <= piece * 32'(outs);
    if (asked) begin
      at_q    <= at_q + bytes_q;
      rest_q  <= last_piece ? taps_q : rest_q - 32'(PIECE);
      if (last_piece) left_q <= left_q - 16'd16;
      fresh_q <= 1'b0;
      port_q  <= !port_q && both_i;
      end_q   <= end_q + piece;
    end
    if (!rst_ni) begin
      port_q <= 1'b0;
      end_q  <= '0;
    end
  end

  fifo #(
      .WIDTH(35),
      .DEPTH(16)
  ) pieces (
      .clk_i,
      .rst_ni,
      .valid_i(asked || ask_q == REPEAT),
      .ready_o(entry_ready),
      .data_i ({ask_q == REPEAT, fresh_q, port, ask_q == REPEAT ? vectors_q : piece}),
      .valid_o(entry_valid),
      .ready_i(entry_end),
      .data_o ({entry_again, entry_fresh, entry_port, entry_count}),
      .count_o(entries)
  );

  // What each port brings, and where it goes.
  logic [1:0] brings, fits, writes, lasts;
  logic [1:0][31:0] write_taps, vector_q;
  logic [1:0][INDEX_BITS:0] write_at, ahead;
  logic [1:0][4:0] write_outs;
  logic [1:0][3:0] waiting;

  for (genvar p = 0; p < 2; ++p) begin : gen_port
    fifo #(
        .WIDTH(38 + INDEX_BITS),
        .DEPTH(8)
    ) places (
        .clk_i,
        .rst_ni,
        .valid_i(asked && port == 1'(p)),
        .ready_o(blocks_ready[p]),
        .data_i ({outs, end_q[INDEX_BITS:0], piece}),
        .valid_o(brings[p]),
        .ready_i(write_ends[p]),
        .data_o ({write_outs[p], write_at[p], write_taps[p]}),
        .count_o(waiting[p])
    );

    assign ahead[p]      = write_at[p] + vector_q[p][INDEX_BITS:0];
    assign fits[p]       = brings[p] && (INDEX_BITS + 1)'(ahead[p] - floor[INDEX_BITS:0]) < (INDEX_BITS + 1)'(DEPTH);
    assign lasts[p]      = vector_q[p] + 32'd1 == write_taps[p];
    assign write_ends[p] = writes[p] && lasts[p];

    always_ff @(posedge clk_i) begin
      if (!rst_ni || write_ends[p]) vector_q[p] <= '0;
      else vector_q[p] <= vector_q[p] + 32'(writes[p]);
    end
  end

  // Port 0: from words to vectors of so many bytes. Port 1: two words each; it goes first.
  logic [191:0] bytes_waiting_q;
  logic [4:0] count_q;
  logic ended_q, half_q;  // the block's last word is here; half a vector is
  logic [63:0] low_q;
  wire shift = writes[0];
  wire [4:0] kept = shift ? count_q - write_outs[0] : count_q;
  wire insert = valid_word_i[0] && ready_word_o[0];
  wire [191:0] shifted = shift ? bytes_waiting_q >> {write_outs[0], 3'b0} : bytes_waiting_q;

  assign ready_word_o[0] = brings[0] && !ended_q && kept <= 5'd16;
  assign ready_word_o[1] = !half_q || fits[1];
  assign writes[1] = half_q && fits[1] && valid_word_i[1];
  assign writes[0] = fits[0] && count_q >= write_outs[0] && !writes[1];

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
  logic [31:0] done_q;
  logic [1:0][INDEX_BITS:0] there_q;  // vectors of each port that were not read yet
  wire [31:0] index = !begun_q && entry_again ? base_q : index_q;
  wire step = entry_valid && (entry_again || there_q[entry_port] != '0) && (!read_valid_q || take_i);
  wire [INDEX_BITS-1:0] write_index = writes[1] ? ahead[1][INDEX_BITS-1:0] : ahead[0][INDEX_BITS-1:0];
  wire [127:0] vector = writes[1] ? {word_i[1], low_q} : bytes_waiting_q[127:0];

  assign valid_o   = read_valid_q;
  assign weights_o = read_q;
  assign entry_end = step && done_q + 32'd1 == entry_count;

  always_ff @(posedge clk_i) begin
    if (writes != '0) ring[write_index] <= vector;
    if (step) read_q <= ring[index[INDEX_BITS-1:0]];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      read_valid_q <= 1'b0;
      begun_q      <= 1'b0;
      done_q       <= '0;
      index_q      <= '0;
      base_q       <= '0;
      there_q      <= '0;
    end else begin
      read_valid_q <= step || (read_valid_q && !take_i);
      if (step) begin
        index_q <= index + 1'b1;
        begun_q <= !entry_end;
        done_q  <= entry_end ? '0 : done_q + 1'b1;
      end
      if (start_i) base_q <= index_q;
      else if (step && !begun_q && entry_fresh && !entry_again) base_q <= index_q;
      for (int unsigned p = 0; p < 2; ++p) begin
        there_q[p] <= there_q[p] + (INDEX_BITS + 1)'(writes[p])
            - (INDEX_BITS + 1)'(step && !entry_again && entry_port == 1'(p));
      end
    end
  end

  wire unused = &{1'b0, entries, waiting, write_outs[1], floor};

endmodule

`default_nettype wire
