// net_drain: takes a tile of sums from the array and gives them to net_store, eight pixels of a channel at a time
// (four where they become float32), with that channel's bias and multiplier. The tile stays as it is; its channels
// move out, two registers ahead of net_store, so that the next tile may come while the last ones are sent.
// Biases and multipliers are read once, when the instruction begins, as far as there is room for them.
`default_nettype none

module net_drain
  import net_types::*;
#(
    parameter int unsigned ROWS       = 16,
    parameter int unsigned COLS       = 24,
    parameter int unsigned ENTRIES    = 1024,  // biases and multipliers on chip
    parameter int unsigned ADDR_WIDTH = 64
) (
    input  wire logic                     clk_i,
    input  wire logic                     rst_ni,
    input  wire logic                     start_i,
    input  wire item_t                    item_i,
    input  wire plan_t                    plan_i,
    input  wire logic [ADDR_WIDTH-1:0]    tables_i,
    output logic                          busy_o,
    // sums
    output logic                          ready_o,
    input  wire logic                     valid_i,
    input  wire place_t                   place_i,
    input  wire logic [32*COLS*ROWS-1:0]  sums_i,
    // bias and multiplier
    output logic                          cmd_valid_o,
    input  wire logic                     cmd_ready_i,
    output logic [ADDR_WIDTH-1:0]         cmd_addr_o,
    output logic [13:0]                   cmd_bytes_o,
    input  wire logic                     entry_valid_i,
    input  wire logic [63:0]              entry_i,
    // groups of sums
    output logic                          valid_o,
    input  wire logic                     ready_i,
    output logic                          first_o,   // of a line
    output logic                          last_o,
    output logic [31:0]                   at_o,      // the line in the arena, and its bytes
    output logic [12:0]                   bytes_o,
    output logic [3:0]                    count_o,
    output logic [255:0]                  sums_o,
    output logic [31:0]                   bias_o,
    output logic [31:0]                   factor_o
);

  localparam int unsigned ENTRY_BITS = $clog2(ENTRIES);

  // What is in tile_q, and the channel that leaves next.
  logic full_q;
  place_t place_q;
  logic [32*COLS-1:0] tile_q[ROWS];
  logic [4:0] channel_q;
  logic [31:0] channel_at_q;

  // A channel on its way: the next one, and the one that is sent.
  logic next_valid_q, sums_valid_q;
  logic [32*COLS-1:0] next_q, sums_q;
  logic [31:0] next_at_q, at_q;
  logic [4:0] next_pixels_q, pixels_q, left_q;
  logic next_upper_q;
  logic [2:0] skip_q;  // four pixels each, until the first one is lowest

  wire conv = item_i.head[7:0] == CONV;
  wire scaled = item_i.head[7:0] != MAX;
  wire wide = item_i.head[8];
  wire [4:0] at_once = wide ? 5'd4 : 5'd8;

  // The table's entries from first_q on.
  logic asks_q;
  logic [15:0] first_q;
  logic [ENTRY_BITS:0] wanted_q, known_q;
  logic [63:0] table_q[ENTRIES];
  logic [63:0] entry_q, next_entry_q;
  wire [15:0] beyond = item_i.outs[15:0] - first_q;
  wire [ENTRY_BITS:0] wanted = !conv ? (ENTRY_BITS + 1)'(1)
      : beyond > 16'(ENTRIES) ? (ENTRY_BITS + 1)'(ENTRIES) : beyond[ENTRY_BITS:0];
  wire [15:0] at = place_q.out - first_q;
  wire [16:0] end_at = 17'(at) + 17'(place_q.outs);
  wire reached = !conv || end_at <= 17'(ENTRIES);
  wire known = !scaled || (reached && (conv ? end_at <= 17'(known_q) : known_q != '0));
  wire filled = !asks_q && known_q == wanted_q;
  wire asked = cmd_valid_o && cmd_ready_i;

  assign cmd_valid_o   = asks_q;
  assign cmd_addr_o    = tables_i + ADDR_WIDTH'({item_i.entry + {15'b0, first_q, 1'b0}, 2'b00});
  assign cmd_bytes_o   = {wanted, 3'b000};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      asks_q   <= 1'b0;
      wanted_q <= '0;
      known_q  <= '0;
    end else if (start_i) begin
      asks_q   <= scaled;
      first_q  <= '0;
      wanted_q <= '0;
      known_q  <= '0;
    end else if (asked) begin
      asks_q   <= 1'b0;
      wanted_q <= wanted;
    end else if (entry_valid_i) begin
      known_q <= known_q + 1'b1;
    end else if (full_q && scaled && !reached && filled) begin
      asks_q  <= 1'b1;
      first_q <= place_q.out;
      known_q <= '0;
    end
  end

  wire send = valid_o && ready_i;
  wire moves = !sums_valid_q || (send && last_o);
  wire leaves = full_q && known && (!next_valid_q || moves);
  wire last_channel = channel_q + 5'd1 == place_q.outs;
  wire [ENTRY_BITS-1:0] entry_at = conv ? at[ENTRY_BITS-1:0] + ENTRY_BITS'(channel_q) : '0;

  assign ready_o  = !full_q;
  assign busy_o   = full_q || next_valid_q || sums_valid_q || !filled;
  assign valid_o  = sums_valid_q && skip_q == '0;
  assign first_o  = left_q == pixels_q;
  assign last_o   = left_q <= at_once;
  assign count_o  = last_o ? left_q[3:0] : at_once[3:0];
  assign at_o     = at_q;
  assign bytes_o  = wide ? {6'b0, pixels_q, 2'b00} : 13'(pixels_q);
  assign sums_o   = sums_q[255:0];
  assign {factor_o, bias_o} = scaled ? entry_q : {32'h3f80_0000, 32'd0};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      full_q       <= 1'b0;
      next_valid_q <= 1'b0;
      sums_valid_q <= 1'b0;
    end else begin
      if (valid_i) full_q <= 1'b1;
      else if (leaves && last_channel) full_q <= 1'b0;
      if (leaves) next_valid_q <= 1'b1;
      else if (moves) next_valid_q <= 1'b0;
      if (moves) sums_valid_q <= next_valid_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      place_q      <= place_i;
      for (int unsigned r = 0; r < ROWS; ++r) tile_q[r] <= sums_i[32*COLS*r+:32*COLS];
      channel_q    <= '0;
      channel_at_q <= place_i.y;
    end
    if (leaves) begin
      next_q        <= tile_q[channel_q[$clog2(ROWS)-1:0]];
      next_entry_q  <= table_q[entry_at];
      next_at_q     <= channel_at_q;
      next_pixels_q <= place_q.pixels;
      next_upper_q  <= place_q.paired && channel_q[0];
      channel_q     <= channel_q + 1'b1;
      channel_at_q  <= channel_at_q + item_i.y_channel;
    end
    if (entry_valid_i) table_q[known_q[ENTRY_BITS-1:0]] <= entry_i;
    // A channel's first pixels are lowest; what was sent goes.
    if (moves) begin
      sums_q   <= next_q;
      entry_q  <= next_entry_q;
      at_q     <= next_at_q;
      pixels_q <= next_pixels_q;
      left_q   <= next_pixels_q;
      skip_q   <= next_upper_q ? 3'(COLS / 8) : '0;
    end else if (send || skip_q != '0) begin
      sums_q <= wide || skip_q != '0 ? sums_q >> 128 : sums_q >> 256;
      if (skip_q != '0) skip_q <= skip_q - 1'b1;
      else left_q <= left_q - at_once;
    end
  end

  wire unused = &{1'b0, item_i, plan_i, place_q};

endmodule

`default_nettype wire
