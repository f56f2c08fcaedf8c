// gemm_jobs: cuts c = a * b into jobs and says where the parts of each one lie.
//
// A job multiplies a panel of a (rows x depth) by a panel of b (depth x cols) for one block of c. The
// jobs of a block follow each other along k, first_o to last_o; the blocks go through c row by row,
// forwards and backwards in turn, so that two neighbours always share a panel where k fits one.
// new_a_o and new_b_o say which panels are others than in the job before: only those are loaded.
//
// A k that does not fit one panel leaves DEPTH / 2 or more to every job: two jobs share what is
// beyond whole panels, in quarters of DEPTH, since shifts multiply those by ldb.
`default_nettype none

module gemm_jobs #(
    parameter int unsigned ADDR_WIDTH = 64,
    parameter int unsigned DEPTH      = 256,  // largest depth of a job
    parameter int unsigned BLOCK_ROWS = 128,  // largest block
    parameter int unsigned BLOCK_COLS = 128
) (
    input  wire logic                           clk_i,
    input  wire logic                           rst_ni,
    input  wire logic                           start_i,
    output logic                                busy_o,    // jobs are left
    // the product; stable from start_i on
    input  wire logic [ADDR_WIDTH-1:0]          a_i,       // byte addresses
    input  wire logic [ADDR_WIDTH-1:0]          b_i,
    input  wire logic [ADDR_WIDTH-1:0]          c_i,
    input  wire logic [31:0]                    m_i,
    input  wire logic [31:0]                    n_i,
    input  wire logic [31:0]                    k_i,
    input  wire logic [ADDR_WIDTH-1:0]          pitch_a_i, // bytes from row to row
    input  wire logic [ADDR_WIDTH-1:0]          pitch_b_i,
    input  wire logic [ADDR_WIDTH-1:0]          pitch_c_i,
    input  wire logic                           wide_i,    // 4 bytes an element of c, not 1
    // the job
    output logic                                valid_o,
    input  wire logic                           ready_i,
    output logic [ADDR_WIDTH-1:0]               a_o,       // the panels' first bytes
    output logic [ADDR_WIDTH-1:0]               b_o,
    output logic [ADDR_WIDTH-1:0]               c_o,       // the block's first byte
    output logic [31:0]                         column_o,  // its first column
    output logic [$clog2(BLOCK_ROWS + 1) - 1:0] rows_o,
    output logic [$clog2(BLOCK_COLS + 1) - 1:0] cols_o,
    output logic [$clog2(DEPTH + 1) - 1:0]      depth_o,   // 0: the sums are zeros
    output logic                                first_o,   // of its block
    output logic                                last_o,
    output logic                                new_a_o,
    output logic                                new_b_o,
    output logic                                new_columns_o // than in the block before
);

  localparam int unsigned QUARTER = DEPTH / 4;
  localparam int unsigned ROWS_WIDTH = $clog2(BLOCK_ROWS + 1);
  localparam int unsigned COLS_WIDTH = $clog2(BLOCK_COLS + 1);
  localparam int unsigned DEPTH_WIDTH = $clog2(DEPTH + 1);

  // Copies for this unit, a cycle after start_i: from then on there are jobs.
  logic wide_q;
  logic [ADDR_WIDTH-1:0] pitch_a_q, pitch_b_q, pitch_c_q;

  replica #(
      .WIDTH(3 * ADDR_WIDTH + 1)
  ) arguments (
      .clk_i,
      .data_i({wide_i, pitch_a_i, pitch_b_i, pitch_c_i}),
      .data_o({wide_q, pitch_a_q, pitch_b_q, pitch_c_q})
  );

  logic active_q, first_q, back_q, new_a_q, new_b_q, new_columns_q;
  logic [31:0] rows_left_q, depth_left_q, column_q;
  logic [ADDR_WIDTH-1:0] a_row_q, a_q, b_q, c_row_q;

  // Rows and columns of this block.
  wire [31:0] cols_left = n_i - column_q;
  wire last_row = rows_left_q <= BLOCK_ROWS;
  wire last_column = back_q ? column_q == '0 : cols_left <= BLOCK_COLS;
  wire [31:0] next_column = back_q ? column_q - BLOCK_COLS : column_q + BLOCK_COLS;

  // Depth of this job: `quarters` unless it is the block's last one.
  wire last_depth = depth_left_q <= DEPTH;
  wire three = depth_left_q > DEPTH + 2 * QUARTER && depth_left_q <= DEPTH + 3 * QUARTER;
  wire two = depth_left_q <= DEPTH + 2 * QUARTER;
  wire [2:0] quarters = two ? 3'd2 : three ? 3'd3 : 3'd4;
  wire [ADDR_WIDTH-1:0] quarter_b = pitch_b_q << $clog2(QUARTER);
  wire [ADDR_WIDTH-1:0] depth_b = two ? quarter_b << 1 : three ? (quarter_b << 1) + quarter_b : quarter_b << 2;

  assign busy_o   = active_q;
  assign valid_o  = active_q;
  assign a_o      = a_q;
  assign b_o      = b_q + ADDR_WIDTH'(column_q);
  assign c_o      = c_row_q + (wide_q ? ADDR_WIDTH'(column_q) << 2 : ADDR_WIDTH'(column_q));
  assign column_o = column_q;
  assign rows_o   = last_row ? ROWS_WIDTH'(rows_left_q) : ROWS_WIDTH'(BLOCK_ROWS);
  assign cols_o   = cols_left <= BLOCK_COLS ? COLS_WIDTH'(cols_left) : COLS_WIDTH'(BLOCK_COLS);
  assign depth_o  = last_depth ? DEPTH_WIDTH'(depth_left_q) : DEPTH_WIDTH'(quarters) * DEPTH_WIDTH'(QUARTER);
  assign first_o  = first_q;
  assign last_o   = last_depth;
  assign new_a_o  = new_a_q;
  assign new_b_o  = new_b_q;
  assign new_columns_o = new_columns_q;

  wire [31:0] whole_depth = k_i[31] ? '0 : k_i;  // a negative k is as good as none
  wire none = m_i[31] || n_i[31] || m_i == '0 || n_i == '0;

  always_ff @(posedge clk_i) begin
    if (start_i) begin
      rows_left_q  <= m_i;
      depth_left_q <= whole_depth;
      column_q     <= '0;
      a_row_q      <= a_i;
      a_q          <= a_i;
      b_q          <= b_i;
      c_row_q      <= c_i;
      first_q      <= 1'b1;
      back_q       <= 1'b0;
      new_a_q      <= 1'b1;
      new_b_q      <= 1'b1;
      new_columns_q <= 1'b1;
    end else if (ready_i) begin
      first_q <= last_depth;
      new_a_q <= !(last_depth && first_q) || last_column;
      new_b_q <= !(last_depth && first_q) || !last_column;
      if (last_depth) new_columns_q <= !last_column;
      if (!last_depth) begin
        depth_left_q <= depth_left_q - 32'(depth_o);
        a_q          <= a_q + ADDR_WIDTH'(depth_o);
        b_q          <= b_q + depth_b;
      end else begin
        depth_left_q <= whole_depth;
        b_q          <= b_i;
        if (!last_column) begin
          column_q <= next_column;
          a_q      <= a_row_q;
        end else begin
          rows_left_q <= rows_left_q - BLOCK_ROWS;
          a_row_q     <= a_row_q + (pitch_a_q << $clog2(BLOCK_ROWS));
          a_q         <= a_row_q + (pitch_a_q << $clog2(BLOCK_ROWS));
          c_row_q     <= c_row_q + (pitch_c_q << $clog2(BLOCK_ROWS));
          back_q      <= !back_q;
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) active_q <= 1'b0;
    else if (start_i) active_q <= !none;
    else if (ready_i && last_depth && last_column && last_row) active_q <= 1'b0;
  end

`ifndef SYNTHESIS
  initial assert (DEPTH >= 8 && 2 ** $clog2(DEPTH) == DEPTH && 2 ** $clog2(BLOCK_ROWS) == BLOCK_ROWS)
  else $fatal(1, "gemm_jobs: DEPTH is %0d, BLOCK_ROWS %0d; expected powers of two", DEPTH, BLOCK_ROWS);
  assert property (@(posedge clk_i) disable iff (!rst_ni) valid_o |->
      rows_o != '0 && cols_o != '0 && 32'(depth_o) <= DEPTH)
  else $error("gemm_jobs: a job of %0d x %0d x %0d", rows_o, cols_o, depth_o);
`endif

endmodule

`default_nettype wire
