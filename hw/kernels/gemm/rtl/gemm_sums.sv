// gemm_sums: adds what the array drains to the sums of the jobs before, for a whole block of c.
//
// The block's last job sends the sums on and leaves none behind.
`default_nettype none

module gemm_sums #(
    parameter int unsigned ROWS      = 16,
    parameter int unsigned COLS      = 32,
    parameter int unsigned LANES     = 4,
    parameter int unsigned ROW_TILES = 8,
    parameter int unsigned COL_TILES = 4
) (
    input  wire logic                           clk_i,
    input  wire logic                           rst_ni,
    // a tile that is about to be drained
    input  wire logic                           drain_i,
    input  wire logic [$clog2(ROW_TILES) - 1:0] row_tile_i,
    input  wire logic [$clog2(COL_TILES) - 1:0] col_tile_i,
    input  wire logic [$clog2(ROWS + 1) - 1:0]  rows_i,
    input  wire logic [$clog2(COLS + 1) - 1:0]  cols_i,
    input  wire logic                           from_zero_i,
    input  wire logic                           zero_i,
    input  wire logic                           store_i,
    // its sums
    input  wire logic                           valid_i,
    input  wire logic [$clog2(ROWS) - 1:0]      row_i,
    input  wire logic [$clog2(COLS / LANES) - 1:0] group_i,
    input  wire logic [32*LANES-1:0]            sums_i,
    // the whole ones, where c has them
    output logic                                valid_o,
    output logic [32*LANES-1:0]                 sums_o,
    output logic                                spare_o   // one less than a whole tile has: c ends before
);

  localparam int unsigned ROW_TILE_BITS = $clog2(ROW_TILES);
  localparam int unsigned COL_TILE_BITS = $clog2(COL_TILES);
  localparam int unsigned INDEX_BITS = ROW_TILE_BITS + COL_TILE_BITS + $clog2(ROWS) + $clog2(COLS / LANES);
  localparam int unsigned ROWS_WIDTH = $clog2(ROWS + 1);
  localparam int unsigned COLS_WIDTH = $clog2(COLS + 1);

  logic [ROW_TILE_BITS+COL_TILE_BITS-1:0] tile_q;
  logic [ROWS_WIDTH-1:0] rows_q;
  logic [COLS_WIDTH-1:0] cols_q;
  logic from_zero_q, zero_q, store_q;

  always_ff @(posedge clk_i) begin
    if (drain_i) begin
      tile_q      <= {row_tile_i, col_tile_i};
      rows_q      <= rows_i;
      cols_q      <= cols_i;
      from_zero_q <= from_zero_i;
      zero_q      <= zero_i;
      store_q     <= store_i;
    end
  end

  // Read, add, write back or send on. A sum is met again after MIN_STEPS at the earliest.
  (* ram_style = "block" *) logic [32*LANES-1:0] block[2 ** INDEX_BITS];
  logic [32*LANES-1:0] before_q, before_q2, sums_q, sums_q2, added_q;
  logic [INDEX_BITS-1:0] index_q, index_q2, added_index_q;
  logic valid_q, valid_q2;  // with sums_q, with sums_q2
  logic store_q2, store_q3, from_zero_q2, from_zero_q3, zero_q2, zero_q3;
  logic write_q, send_q;  // with added_q
  wire [INDEX_BITS-1:0] index = {tile_q, row_i, group_i};
  wire in_c = ROWS_WIDTH'(row_i) < rows_q && COLS_WIDTH'(group_i) * COLS_WIDTH'(LANES) < cols_q;

  always_ff @(posedge clk_i) begin
    before_q  <= block[index];
    before_q2 <= before_q;
  end

  always_ff @(posedge clk_i) begin
    if (write_q) block[added_index_q] <= added_q;
  end

  always_ff @(posedge clk_i) begin
    sums_q        <= sums_i;
    sums_q2       <= sums_q;
    index_q       <= index;
    index_q2      <= index_q;
    added_index_q <= index_q2;
    from_zero_q2  <= from_zero_q;
    from_zero_q3  <= from_zero_q2;
    zero_q2       <= zero_q;
    zero_q3       <= zero_q2;
    store_q2      <= store_q;
    store_q3      <= store_q2;
    for (int unsigned lane = 0; lane < LANES; ++lane) begin
      added_q[32*lane+:32] <= zero_q3 ? '0 : sums_q2[32*lane+:32] + (from_zero_q3 ? '0 : before_q2[32*lane+:32]);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q  <= 1'b0;
      valid_q2 <= 1'b0;
      write_q  <= 1'b0;
      send_q   <= 1'b0;
      spare_o  <= 1'b0;
    end else begin
      valid_q  <= valid_i && in_c;
      valid_q2 <= valid_q;
      write_q  <= valid_q2 && !store_q3;
      send_q   <= valid_q2 && store_q3;
      spare_o  <= valid_i && !in_c && store_q;
    end
  end

  assign valid_o = send_q;
  assign sums_o  = added_q;

endmodule

`default_nettype wire
