// gemm_store: takes the sums of c's blocks out of their queue, finishes them and writes them to memory.
//
// Sums come in the order in which the array drains them: tile by tile, row by row, LANES at a time. A
// row of a tile is a write command of its own. The lanes never stop: a group goes into them when the queue
// behind them has room for it.
`default_nettype none

module gemm_store #(
    parameter int unsigned ADDR_WIDTH  = 64,
    parameter int unsigned DATA_WIDTH  = 64,
    parameter int unsigned ROWS        = 16,
    parameter int unsigned COLS        = 32,
    parameter int unsigned ROW_TILES   = 8,
    parameter int unsigned COL_TILES   = 4,
    parameter int unsigned LANES       = 4,
    parameter int unsigned OUTSTANDING = 8
) (
    input  wire logic                                       clk_i,
    input  wire logic                                       rst_ni,
    input  wire logic [ADDR_WIDTH-1:0]                      pitch_i,      // bytes from row to row
    input  wire logic [1:0]                                 kind_i,       // see gemm_lane
    input  wire logic                                       with_bias_i,
    input  wire logic                                       with_scale_i,
    input  wire logic                                       relu_i,
    output logic                                            busy_o,       // something is on its way
    output logic                                            idle_o,       // everything is in memory
    // blocks
    input  wire logic                                       job_valid_i,
    output logic                                            job_ready_o,
    input  wire logic [ADDR_WIDTH-1:0]                      job_addr_i,
    input  wire logic [$clog2(ROWS * ROW_TILES + 1) - 1:0]  job_rows_i,
    input  wire logic [$clog2(COLS * COL_TILES + 1) - 1:0]  job_cols_i,
    input  wire logic                                       job_new_columns_i,
    // sums
    input  wire logic                                       valid_i,
    output logic                                            ready_o,
    input  wire logic [32*LANES-1:0]                        sums_i,
    // bias and scale
    input  wire logic                                       columns_ready_i,
    output logic                                            columns_take_o,
    output logic [$clog2(COLS * COL_TILES / LANES) - 1:0]   columns_group_o,
    input  wire logic [32*LANES-1:0]                        bias_i,
    input  wire logic [32*LANES-1:0]                        scale_i,
    // AXI4
    output logic                                            awvalid_o,
    input  wire logic                                       awready_i,
    output logic [ADDR_WIDTH-1:0]                           awaddr_o,
    output logic [7:0]                                      awlen_o,
    output logic [2:0]                                      awsize_o,
    output logic [1:0]                                      awburst_o,
    output logic                                            wvalid_o,
    input  wire logic                                       wready_i,
    output logic [DATA_WIDTH-1:0]                           wdata_o,
    output logic [DATA_WIDTH/8-1:0]                         wstrb_o,
    output logic                                            wlast_o,
    input  wire logic                                       bvalid_i,
    output logic                                            bready_o
);

  localparam int unsigned ROWS_WIDTH = $clog2(ROWS * ROW_TILES + 1);
  localparam int unsigned COLS_WIDTH = $clog2(COLS * COL_TILES + 1);
  localparam int unsigned COUNT_WIDTH = $clog2(LANES + 1);
  localparam int unsigned BYTES_WIDTH = $clog2(4 * COLS + 1);
  localparam int unsigned GROUP_BITS = $clog2(COLS / LANES);
  localparam int unsigned STEPS = 22;  // of gemm_lane
  localparam int unsigned WAITING = 32;  // groups in the lanes and behind them

  // Copies for this unit, a cycle late: the first sum of a run comes long after.
  logic bytes, needs_vectors_q;
  logic [ADDR_WIDTH-1:0] pitch_q;

  replica #(
      .WIDTH(ADDR_WIDTH + 2)
  ) arguments (
      .clk_i,
      .data_i({kind_i == 2'd1, with_bias_i || with_scale_i, pitch_i}),
      .data_o({bytes, needs_vectors_q, pitch_q})
  );

  // Blocks.
  logic [2:0] jobs_count;
  logic job_valid, job_new_columns, take;
  logic [ADDR_WIDTH-1:0] job_addr;
  logic [ROWS_WIDTH-1:0] job_rows;
  logic [COLS_WIDTH-1:0] job_cols;

  fifo #(
      .WIDTH(ADDR_WIDTH + ROWS_WIDTH + COLS_WIDTH + 1),
      .DEPTH(4)
  ) jobs (
      .clk_i,
      .rst_ni,
      .valid_i(job_valid_i),
      .ready_o(job_ready_o),
      .data_i ({job_addr_i, job_rows_i, job_cols_i, job_new_columns_i}),
      .valid_o(job_valid),
      .ready_i(take),
      .data_o ({job_addr, job_rows, job_cols, job_new_columns}),
      .count_o(jobs_count)
  );

  // Through the block as the array goes through it.
  logic active_q;
  logic [ADDR_WIDTH-1:0] band_q, tile_q, row_addr_q;  // of this row of tiles, this tile, this row
  logic [ROWS_WIDTH-1:0] rows_left_q;                 // from this row of tiles on
  logic [COLS_WIDTH-1:0] cols_q, cols_left_q;         // from this tile on
  logic [$clog2(COL_TILES) - 1:0] col_tile_q;
  logic [$clog2(ROWS) - 1:0] row_q;
  logic [GROUP_BITS-1:0] group_q;

  wire last_tile_row = rows_left_q <= ROWS_WIDTH'(ROWS);
  wire last_tile_col = cols_left_q <= COLS_WIDTH'(COLS);
  wire [COLS_WIDTH-1:0] tile_cols = last_tile_col ? cols_left_q : COLS_WIDTH'(COLS);
  wire last_row = last_tile_row ? ROWS_WIDTH'(row_q) + 1'b1 == rows_left_q : row_q == '1;
  wire [COLS_WIDTH-1:0] left_in_row = tile_cols - COLS_WIDTH'(group_q) * COLS_WIDTH'(LANES);
  wire last_group = left_in_row <= COLS_WIDTH'(LANES);
  wire [COUNT_WIDTH-1:0] count = last_group ? left_in_row[COUNT_WIDTH-1:0] : COUNT_WIDTH'(LANES);
  wire [ADDR_WIDTH-1:0] next_tile = tile_q + (bytes ? ADDR_WIDTH'(COLS) : ADDR_WIDTH'(4 * COLS));
  wire [ADDR_WIDTH-1:0] next_band = band_q + (pitch_q << $clog2(ROWS));
  wire needs_columns = job_new_columns && needs_vectors_q;

  logic cmd_ready, room;
  wire fire = active_q && valid_i && room && (group_q != '0 || cmd_ready);
  wire cmd_valid = active_q && valid_i && room && group_q == '0;
  wire [BYTES_WIDTH-1:0] words_bytes = {BYTES_WIDTH'(tile_cols) << 2};
  wire [BYTES_WIDTH-1:0] whole_bytes = {BYTES_WIDTH'(tile_cols + COLS_WIDTH'(3)) >> 2} << 2;
  wire block_ends = fire && last_group && last_row && last_tile_row && last_tile_col;

  assign take            = job_valid && (!active_q || block_ends) && (!needs_columns || columns_ready_i);
  assign columns_take_o  = take && needs_columns;
  assign columns_group_o = {col_tile_q, group_q};
  assign ready_o         = fire;

  always_ff @(posedge clk_i) begin
    if (take) begin
      band_q      <= job_addr;
      tile_q      <= job_addr;
      row_addr_q  <= job_addr;
      rows_left_q <= job_rows;
      cols_q      <= job_cols;
      cols_left_q <= job_cols;
      col_tile_q  <= '0;
      row_q       <= '0;
      group_q     <= '0;
    end else if (fire) begin
      group_q <= last_group ? '0 : group_q + 1'b1;
      if (last_group) begin
        row_q      <= last_row ? '0 : row_q + 1'b1;
        row_addr_q <= row_addr_q + pitch_q;
      end
      if (last_group && last_row) begin
        col_tile_q  <= last_tile_col ? '0 : col_tile_q + 1'b1;
        cols_left_q <= last_tile_col ? cols_q : cols_left_q - COLS_WIDTH'(COLS);
        tile_q      <= last_tile_col ? next_band : next_tile;
        row_addr_q  <= last_tile_col ? next_band : next_tile;
        if (last_tile_col) begin
          band_q      <= next_band;
          rows_left_q <= rows_left_q - ROWS_WIDTH'(ROWS);
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) active_q <= 1'b0;
    else if (take) active_q <= 1'b1;
    else if (block_ends) active_q <= 1'b0;
  end

  // Elements, with how many of a group there are and whether it ends its row.
  logic [STEPS-1:0] valid_q;
  logic [STEPS*(COUNT_WIDTH+1)-1:0] shape_q;
  logic [32*LANES-1:0] elements, out_elements;
  logic nothing_waits, queue_ready, out_valid, out_last, pack_ready;
  logic packed_valid, packed_ready, words_valid, words_ready, written;
  logic [$clog2(WAITING + 1) - 1:0] queue_count;
  logic [DATA_WIDTH-1:0] packed_word, word;
  logic [COUNT_WIDTH-1:0] out_count;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= {valid_q[STEPS-2:0], fire};
  end

  always_ff @(posedge clk_i) begin
    shape_q <= {shape_q[(STEPS-1)*(COUNT_WIDTH+1)-1:0], last_group, count};
  end

  credits #(
      .TOTAL(WAITING),
      .TAKE (1),
      .GIVES(1)
  ) groups (
      .clk_i,
      .rst_ni,
      .take_i(fire),
      .give_i(out_valid && pack_ready),
      .room_o(room),
      .idle_o(nothing_waits)
  );

  for (genvar i = 0; i < LANES; ++i) begin : gen_lane
    gemm_lane lane (
        .clk_i,
        .valid_i(fire),
        .kind_i,
        .with_bias_i,
        .relu_i,
        .sum_i(sums_i[32*i+:32]),
        .bias_i(bias_i[32*i+:32]),
        .scale_i(scale_i[32*i+:32]),
        .element_o(elements[32*i+:32])
    );
  end

  fifo #(
      .WIDTH(32 * LANES + COUNT_WIDTH + 1),
      .DEPTH(WAITING)
  ) queue (
      .clk_i,
      .rst_ni,
      .valid_i(valid_q[STEPS-1]),
      .ready_o(queue_ready),
      .data_i ({elements, shape_q[STEPS*(COUNT_WIDTH+1)-1-:COUNT_WIDTH+1]}),
      .valid_o(out_valid),
      .ready_i(pack_ready),
      .data_o ({out_elements, out_last, out_count}),
      .count_o(queue_count)
  );

  gemm_pack #(
      .DATA_WIDTH(DATA_WIDTH),
      .LANES(LANES)
  ) pack (
      .clk_i,
      .rst_ni,
      .bytes_i(bytes),
      .valid_i(out_valid),
      .ready_o(pack_ready),
      .elements_i(out_elements),
      .count_i(out_count),
      .last_i(out_last),
      .valid_o(packed_valid),
      .ready_i(packed_ready),
      .word_o(packed_word)
  );

  skid #(
      .WIDTH(DATA_WIDTH)
  ) words (
      .clk_i,
      .rst_ni,
      .valid_i(packed_valid),
      .ready_o(packed_ready),
      .data_i (packed_word),
      .valid_o(words_valid),
      .ready_i(words_ready),
      .data_o (word)
  );

  axi_write #(
      .ADDR_WIDTH (ADDR_WIDTH),
      .DATA_WIDTH (DATA_WIDTH),
      .BYTES_WIDTH(BYTES_WIDTH),
      .OUTSTANDING(OUTSTANDING)
  ) write (
      .clk_i,
      .rst_ni,
      .cmd_valid_i(cmd_valid),
      .cmd_ready_o(cmd_ready),
      .cmd_addr_i (row_addr_q),
      .cmd_bytes_i(bytes ? whole_bytes : words_bytes),
      .valid_i    (words_valid),
      .ready_o    (words_ready),
      .data_i     (word),
      .idle_o     (written),
      .awvalid_o,
      .awready_i,
      .awaddr_o,
      .awlen_o,
      .awsize_o,
      .awburst_o,
      .wvalid_o,
      .wready_i,
      .wdata_o,
      .wstrb_o,
      .wlast_o,
      .bvalid_i,
      .bready_o
  );

  assign busy_o = valid_i || !nothing_waits || !written;
  assign idle_o = !active_q && !job_valid && nothing_waits && written;

  wire unused = &{1'b0, jobs_count, queue_count, queue_ready};

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni) valid_q[STEPS-1] |-> queue_ready)
  else $error("gemm_store: elements for which there is no room");
`endif

endmodule

`default_nettype wire
