// gemm_schedule: says what row 0 of the array does in every cycle: which panel, which tile, which k.
//
// A job goes through its block tile by tile, and through all k in each. A tile takes at least
// MIN_STEPS, which is what draining one takes: a short one waits before its first k. Jobs follow each
// other without a gap as long as their panels are there. A tile whose sums go to memory begins
// when there is room for all of them: from then on nothing stops.
`default_nettype none

module gemm_schedule #(
    parameter int unsigned ROWS      = 16,
    parameter int unsigned COLS      = 32,
    parameter int unsigned ROW_TILES = 8,
    parameter int unsigned COL_TILES = 4,
    parameter int unsigned DEPTH     = 256,
    parameter int unsigned MIN_STEPS = 128
) (
    input  wire logic                                 clk_i,
    input  wire logic                                 rst_ni,
    input  wire logic                                 start_i,    // no panel is there
    input  wire logic                                 room_i,     // for the sums of a tile
    output logic                                      promise_o,  // a tile begins that needs it
    // jobs
    input  wire logic                                 job_valid_i,
    output logic                                      job_ready_o,
    input  wire logic [$clog2(ROWS * ROW_TILES + 1) - 1:0] job_rows_i,
    input  wire logic [$clog2(COLS * COL_TILES + 1) - 1:0] job_cols_i,
    input  wire logic [$clog2(DEPTH + 1) - 1:0]       job_depth_i,
    input  wire logic                                 job_first_i,
    input  wire logic                                 job_last_i,
    input  wire logic                                 job_new_a_i,
    input  wire logic                                 job_new_b_i,
    // panels
    input  wire logic                                 loaded_a_i,
    input  wire logic                                 loaded_b_i,
    output logic                                      release_a_o, // no row reads the other one of a any more
    output logic                                      release_b_o,
    // what row 0 does
    output logic                                      busy_o,      // multiplies
    output logic                                      buffer_a_o,
    output logic                                      buffer_b_o,
    output logic [$clog2(ROW_TILES) - 1:0]            row_tile_o,
    output logic [$clog2(COL_TILES) - 1:0]            col_tile_o,
    output logic [$clog2(DEPTH) - 1:0]                k_o,
    output logic                                      first_o,     // k of its tile
    output logic                                      last_o,
    // the tile
    output logic [$clog2(ROWS + 1) - 1:0]             rows_o,      // that are in c
    output logic [$clog2(COLS + 1) - 1:0]             cols_o,
    output logic                                      from_zero_o, // first job of its block
    output logic                                      zero_o,      // its sums are zeros whatever the array says
    output logic                                      store_o      // last job of its block
);

  localparam int unsigned ROWS_WIDTH = $clog2(ROWS * ROW_TILES + 1);
  localparam int unsigned COLS_WIDTH = $clog2(COLS * COL_TILES + 1);
  localparam int unsigned DEPTH_WIDTH = $clog2(DEPTH + 1);
  localparam int unsigned K_BITS = $clog2(DEPTH);

  logic [2:0] jobs_count;
  logic valid, new_a, new_b, from_zero, store;
  logic [ROWS_WIDTH-1:0] rows;
  logic [COLS_WIDTH-1:0] cols;
  logic [DEPTH_WIDTH-1:0] depth;
  logic take;

  fifo #(
      .WIDTH(ROWS_WIDTH + COLS_WIDTH + DEPTH_WIDTH + 4),
      .DEPTH(4)
  ) jobs (
      .clk_i,
      .rst_ni,
      .valid_i(job_valid_i),
      .ready_o(job_ready_o),
      .data_i ({job_rows_i, job_cols_i, job_depth_i, job_first_i, job_last_i, job_new_a_i, job_new_b_i}),
      .valid_o(valid),
      .ready_i(take),
      .data_o ({rows, cols, depth, from_zero, store, new_a, new_b}),
      .count_o(jobs_count)
  );

  // Panels that are loaded and not used yet; whether the other buffer holds an old one.
  logic [1:0] ready_a_q, ready_b_q;
  logic old_a_q, old_b_q;
  wire empty = depth == '0;
  wire there = empty || ((!new_a || ready_a_q != '0) && (!new_b || ready_b_q != '0));

  logic active_q, from_zero_q, zero_q, store_q, buffer_a_q, buffer_b_q;
  logic [ROWS_WIDTH-1:0] rows_left_q;
  logic [COLS_WIDTH-1:0] cols_left_q, cols_q;
  logic [DEPTH_WIDTH-1:0] wait_q, wait_left_q;  // steps before the first k of a tile
  logic [K_BITS-1:0] k_q, last_k_q;
  logic [$clog2(ROW_TILES) - 1:0] row_tile_q;
  logic [$clog2(COL_TILES) - 1:0] col_tile_q;

  wire due = active_q && wait_left_q == '0;
  wire works = due && (k_q != '0 || !store_q || room_i);
  wire tile_ends = works && k_q == last_k_q;
  wire last_row = rows_left_q <= ROWS_WIDTH'(ROWS);
  wire last_col = cols_left_q <= COLS_WIDTH'(COLS);
  wire job_ends = tile_ends && last_row && last_col;
  wire take_a = take && new_a && !empty;
  wire take_b = take && new_b && !empty;
  wire [DEPTH_WIDTH-1:0] steps = empty ? DEPTH_WIDTH'(1) : depth;
  wire [DEPTH_WIDTH-1:0] wait_steps =
      steps < DEPTH_WIDTH'(MIN_STEPS) ? DEPTH_WIDTH'(MIN_STEPS) - steps : '0;

  assign take        = valid && there && (!active_q || job_ends);
  // The array's last row works MIN_STEPS after the first: only then is an old panel of a done with.
  logic [DEPTH_WIDTH-1:0] old_left_q;
  assign release_a_o = old_left_q == DEPTH_WIDTH'(1);
  assign release_b_o = take_b && old_b_q;
  assign busy_o      = works;
  assign promise_o   = works && k_q == '0 && store_q;
  assign buffer_a_o  = buffer_a_q;
  assign buffer_b_o  = buffer_b_q;
  assign row_tile_o  = row_tile_q;
  assign col_tile_o  = col_tile_q;
  assign k_o         = k_q;
  assign first_o     = k_q == '0;
  assign last_o      = tile_ends;
  assign rows_o      = last_row ? rows_left_q[$clog2(ROWS + 1)-1:0] : ($clog2(ROWS + 1))'(ROWS);
  assign cols_o      = last_col ? cols_left_q[$clog2(COLS + 1)-1:0] : ($clog2(COLS + 1))'(COLS);
  assign from_zero_o = from_zero_q;
  assign zero_o      = zero_q;
  assign store_o     = store_q;

  always_ff @(posedge clk_i) begin
    if (take) begin
      rows_left_q <= rows;
      cols_left_q <= cols;
      cols_q      <= cols;
      last_k_q    <= K_BITS'(steps - 1'b1);
      wait_q      <= wait_steps;
      wait_left_q <= wait_steps;
      from_zero_q <= from_zero;
      zero_q      <= empty;
      store_q     <= store;
      k_q         <= '0;
      row_tile_q  <= '0;
      col_tile_q  <= '0;
    end else if (active_q) begin
      if (!due) wait_left_q <= wait_left_q - 1'b1;
      if (works) k_q <= tile_ends ? '0 : k_q + 1'b1;
      if (tile_ends) begin
        wait_left_q <= wait_q;
        col_tile_q  <= last_col ? '0 : col_tile_q + 1'b1;
        cols_left_q <= last_col ? cols_q : cols_left_q - COLS_WIDTH'(COLS);
        if (last_col) begin
          row_tile_q  <= row_tile_q + 1'b1;
          rows_left_q <= rows_left_q - ROWS_WIDTH'(ROWS);
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      active_q   <= 1'b0;
      ready_a_q  <= '0;
      ready_b_q  <= '0;
      old_a_q    <= 1'b0;
      old_left_q <= '0;
      old_b_q    <= 1'b0;
      buffer_a_q <= 1'b1;  // the first panel goes to buffer 0
      buffer_b_q <= 1'b1;
    end else begin
      if (take) active_q <= 1'b1;
      else if (job_ends) active_q <= 1'b0;
      ready_a_q <= ready_a_q + 2'(loaded_a_i) - 2'(take_a);
      ready_b_q <= ready_b_q + 2'(loaded_b_i) - 2'(take_b);
      if (take_a && old_a_q) old_left_q <= DEPTH_WIDTH'(MIN_STEPS);
      else if (old_left_q != '0) old_left_q <= old_left_q - 1'b1;
      if (take_a) begin
        old_a_q    <= 1'b1;
        buffer_a_q <= !buffer_a_q;
      end
      if (take_b) begin
        old_b_q    <= 1'b1;
        buffer_b_q <= !buffer_b_q;
      end
    end
  end

  wire unused = &{1'b0, jobs_count};

`ifndef SYNTHESIS
  initial assert (MIN_STEPS >= 2 && MIN_STEPS <= DEPTH)
  else $fatal(1, "gemm_schedule: draining a tile takes %0d steps, more than DEPTH, %0d", MIN_STEPS, DEPTH);
  assert property (@(posedge clk_i) disable iff (!rst_ni) ready_a_q <= 2'd2 && ready_b_q <= 2'd2)
  else $error("gemm_schedule: %0d panels of a and %0d of b in two buffers", ready_a_q, ready_b_q);
`endif

endmodule

`default_nettype wire
