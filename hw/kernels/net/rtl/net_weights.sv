// net_weights: the weights in the order in which they are used, those of up to 16 output channels at a time.
//
// A request is a tile's: all blocks of its group, from memory; or, where they fit on chip, once more those of
// the tile before. The reads of the next blocks are asked for while the one before is used.
`default_nettype none

module net_weights #(
    parameter int unsigned ADDR_WIDTH = 64,
    parameter int unsigned DEPTH      = 4096  // vectors on chip
) (
    input  wire logic                  clk_i,
    input  wire logic                  rst_ni,
    input  wire logic [ADDR_WIDTH-1:0] weights_i,
    input  wire logic                  alone_i,
    input  wire logic [15:0]           outs_i,      // of the group
    output logic                       busy_o,
    // requests
    input  wire logic                  valid_i,
    output logic                       ready_o,
    input  wire logic                  again_i,
    input  wire logic [31:0]           at_i,
    input  wire logic [31:0]           taps_i,
    // what to read
    output logic                       cmd_valid_o,
    input  wire logic                  cmd_ready_i,
    output logic [ADDR_WIDTH-1:0]      cmd_addr_o,
    output logic [31:0]                cmd_bytes_o,
    // what was read
    input  wire logic                  valid_word_i,
    output logic                       ready_word_o,
    input  wire logic [63:0]           word_i,
    input  wire logic                  last_word_i,
    // vectors
    output logic                       valid_o,
    input  wire logic                  take_i,
    output logic [127:0]               weights_o
);

  typedef enum logic [1:0] {FREE, SIZE, ASK, REPEAT} ask_t;
  ask_t ask_q;
  logic [31:0] at_q, taps_q, bytes_q;
  logic [15:0] left_q;
  logic [2:0] entries;
  logic entry_ready, entry_valid, entry_again, entry_fresh, entry_end, fresh_q;
  logic [4:0] entry_outs;
  logic [31:0] entry_taps;
  wire last_block = alone_i || left_q <= 16'd16;
  wire [4:0] outs = alone_i ? 5'd1 : last_block ? left_q[4:0] : 5'd16;
  wire asked = cmd_valid_o && cmd_ready_i;

  assign ready_o     = ask_q == FREE;
  assign cmd_valid_o = ask_q == ASK && entry_ready;
  assign cmd_addr_o  = weights_i + ADDR_WIDTH'(at_q);
  assign cmd_bytes_o = bytes_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) ask_q <= FREE;
    else begin
      unique case (ask_q)
        FREE: if (valid_i) ask_q <= again_i ? REPEAT : SIZE;
        SIZE: ask_q <= ASK;
        ASK: if (asked) ask_q <= last_block ? FREE : SIZE;
        default: if (entry_ready) ask_q <= FREE;
      endcase
    end
  end

  always_ff @(posedge clk_i) begin
    if (ask_q == FREE) begin
      at_q   <= at_i;
      taps_q <= taps_i;
      left_q <= outs_i;
      fresh_q <= 1'b1;
    end
    if (ask_q == SIZE) bytes_q <= taps_q * 32'(outs);
    if (asked) begin
      at_q   <= at_q + bytes_q;
      left_q <= left_q - 16'd16;
      fresh_q <= 1'b0;
    end
  end

  fifo #(
      .WIDTH(39),
      .DEPTH(4)
  ) blocks (
      .clk_i,
      .rst_ni,
      .valid_i(asked || ask_q == REPEAT),
      .ready_o(entry_ready),
      .data_i ({ask_q == REPEAT, fresh_q, outs, taps_q}),
      .valid_o(entry_valid),
      .ready_i(entry_end),
      .data_o ({entry_again, entry_fresh, entry_outs, entry_taps}),
      .count_o(entries)
  );

  // From words to vectors of entry_outs bytes.
  localparam int unsigned INDEX_BITS = $clog2(DEPTH);
  logic [191:0] bytes_waiting_q;
  logic [4:0] count_q;
  logic [31:0] vector_q;
  logic ended_q;  // the block's last word is here
  logic [INDEX_BITS:0] index_q, total_q;
  logic stored_valid_q;
  logic [127:0] stored_q;
  logic [127:0] stored[DEPTH];

  wire streams = entry_valid && !entry_again;
  wire repeats = entry_valid && entry_again;
  wire unpacked = streams && count_q >= entry_outs;
  wire shift = unpacked && take_i;
  wire [4:0] kept = shift ? count_q - entry_outs : count_q;
  wire last_vector = vector_q + 32'd1 == entry_taps;
  wire insert = valid_word_i && ready_word_o;
  wire [191:0] shifted = shift ? bytes_waiting_q >> {entry_outs, 3'b0} : bytes_waiting_q;

  assign valid_o      = repeats ? stored_valid_q : unpacked;
  assign weights_o    = repeats ? stored_q : bytes_waiting_q[127:0];
  assign ready_word_o = streams && !ended_q && kept <= 5'd16;
  assign entry_end    = repeats ? stored_valid_q && take_i && index_q == total_q : shift && last_vector;
  assign busy_o       = ask_q != FREE || entry_valid;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_q  <= '0;
      vector_q <= '0;
      ended_q  <= 1'b0;
    end else if (shift && last_vector) begin
      count_q  <= '0;
      vector_q <= '0;
      ended_q  <= 1'b0;
    end else begin
      count_q  <= kept + (insert ? 5'd8 : 5'd0);
      vector_q <= vector_q + 32'(shift);
      ended_q  <= ended_q || (insert && last_word_i);
    end
  end

  always_ff @(posedge clk_i) begin
    bytes_waiting_q <= insert ? shifted & ~({192{1'b1}} << {kept, 3'b0}) | 192'(word_i) << {kept, 3'b0} : shifted;
  end

  // What was unpacked is kept, and read again.
  wire restart = entry_fresh && vector_q == '0;
  wire step = repeats && (!stored_valid_q || take_i) && index_q != total_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      index_q        <= '0;
      total_q        <= '0;
      stored_valid_q <= 1'b0;
    end else if (streams) begin
      if (shift) begin
        total_q <= restart ? (INDEX_BITS + 1)'(1) : total_q + (INDEX_BITS + 1)'(total_q != (INDEX_BITS + 1)'(DEPTH));
      end
    end else if (repeats) begin
      if (step) index_q <= index_q + 1'b1;
      if (step) stored_valid_q <= 1'b1;
      else if (take_i) stored_valid_q <= 1'b0;
      if (entry_end) index_q <= '0;
    end
  end

  wire [INDEX_BITS-1:0] to = restart ? '0 : total_q[INDEX_BITS-1:0];
  always_ff @(posedge clk_i) begin
    if (shift && (restart || total_q != (INDEX_BITS + 1)'(DEPTH))) stored[to] <= bytes_waiting_q[127:0];
    if (step) stored_q <= stored[index_q[INDEX_BITS-1:0]];
  end

  wire unused = &{1'b0, entries};

endmodule

`default_nettype wire
