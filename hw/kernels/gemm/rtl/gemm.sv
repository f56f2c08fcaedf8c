// gemm: c = epilogue(a * b), int8 x int8, in RTL. Registers, modes and results are those of ../gemm.cpp.
//
//   gmem0 -> gemm_load -> gemm_panel_a -.                     blocks of sums       queue
//                                        gemm_array -> gemm_sums -> gemm_queue -> gemm_store -> gmem2
//   gmem1 -> gemm_load -> gemm_panel_b -'     ^                                       |
//                                       gemm_schedule               gmem2 -> gemm_columns (bias, scale)
//
// gemm_jobs cuts the product into jobs, a panel of a times a panel of b, and gives each unit its part
// of them. The units work on their jobs at their own pace: the next panels arrive and the block before
// is stored while the array multiplies. Only a full queue holds it up, before the first k of a tile:
// between two tiles nothing there has an enable.
`default_nettype none

module gemm #(
    parameter int unsigned ROWS        = 16,   // ROWS x COLS products in a cycle
    parameter int unsigned COLS        = 32,
    parameter int unsigned DSP_ROWS    = 12,   // rows whose products are made by DSPs; the others by LUTs
    parameter int unsigned DEPTH       = 256,  // k of a panel
    parameter int unsigned BLOCK_ROWS  = 128,  // rows of a panel of a, columns of a panel of b
    parameter int unsigned BLOCK_COLS  = 128,
    parameter int unsigned LANES       = 4,    // sums that leave the array in a cycle
    parameter int unsigned QUEUE       = 512,  // groups of LANES sums that wait to be stored
    parameter int unsigned DATA_WIDTH  = 64,   // of the memory ports: 8 * LANES to 32 * LANES bits
    parameter int unsigned ADDR_WIDTH  = 64,
    parameter int unsigned OUTSTANDING = 8     // bursts; DDR answers after 37 cycles, 85 at worst
) (
    input  wire logic               ap_clk,
    input  wire logic               ap_rst_n,
    /* verilator lint_off SYMRSVDWORD */  // the name Vitis HLS gives it is a macro in some C headers
    output logic                    interrupt,
    /* verilator lint_on SYMRSVDWORD */
    // registers: 0x10 a, 0x1c b, 0x28 c (64 bits each), 0x34 m, 0x3c n, 0x44 k, 0x4c lda, 0x54 ldb,
    // 0x5c ldc, 0x64 bias, 0x70 scale (64 bits each), 0x7c mode; in the word behind scale, which HLS
    // reserves and reads as 0: 0x78, what memory has answered, see axi_responses: bits 1:0 gmem0,
    // 3:2 gmem1, 5:4 reads of gmem2, 7:6 writes
    input  wire logic               s_axi_control_AWVALID,
    output logic                    s_axi_control_AWREADY,
    input  wire logic [6:0]         s_axi_control_AWADDR,
    input  wire logic               s_axi_control_WVALID,
    output logic                    s_axi_control_WREADY,
    input  wire logic [31:0]        s_axi_control_WDATA,
    input  wire logic [3:0]         s_axi_control_WSTRB,
    output logic                    s_axi_control_BVALID,
    input  wire logic               s_axi_control_BREADY,
    output logic [1:0]              s_axi_control_BRESP,
    input  wire logic               s_axi_control_ARVALID,
    output logic                    s_axi_control_ARREADY,
    input  wire logic [6:0]         s_axi_control_ARADDR,
    output logic                    s_axi_control_RVALID,
    input  wire logic               s_axi_control_RREADY,
    output logic [31:0]             s_axi_control_RDATA,
    output logic [1:0]              s_axi_control_RRESP,
    // a
    output logic                    m_axi_gmem0_ARVALID,
    input  wire logic               m_axi_gmem0_ARREADY,
    output logic [ADDR_WIDTH-1:0]   m_axi_gmem0_ARADDR,
    output logic [7:0]              m_axi_gmem0_ARLEN,
    output logic [2:0]              m_axi_gmem0_ARSIZE,
    output logic [1:0]              m_axi_gmem0_ARBURST,
    output logic [3:0]              m_axi_gmem0_ARCACHE,
    output logic [2:0]              m_axi_gmem0_ARPROT,
    input  wire logic               m_axi_gmem0_RVALID,
    output logic                    m_axi_gmem0_RREADY,
    input  wire logic [DATA_WIDTH-1:0] m_axi_gmem0_RDATA,
    input  wire logic [1:0]         m_axi_gmem0_RRESP,
    input  wire logic               m_axi_gmem0_RLAST,
    // b
    output logic                    m_axi_gmem1_ARVALID,
    input  wire logic               m_axi_gmem1_ARREADY,
    output logic [ADDR_WIDTH-1:0]   m_axi_gmem1_ARADDR,
    output logic [7:0]              m_axi_gmem1_ARLEN,
    output logic [2:0]              m_axi_gmem1_ARSIZE,
    output logic [1:0]              m_axi_gmem1_ARBURST,
    output logic [3:0]              m_axi_gmem1_ARCACHE,
    output logic [2:0]              m_axi_gmem1_ARPROT,
    input  wire logic               m_axi_gmem1_RVALID,
    output logic                    m_axi_gmem1_RREADY,
    input  wire logic [DATA_WIDTH-1:0] m_axi_gmem1_RDATA,
    input  wire logic [1:0]         m_axi_gmem1_RRESP,
    input  wire logic               m_axi_gmem1_RLAST,
    // c, bias, scale
    output logic                    m_axi_gmem2_ARVALID,
    input  wire logic               m_axi_gmem2_ARREADY,
    output logic [ADDR_WIDTH-1:0]   m_axi_gmem2_ARADDR,
    output logic [7:0]              m_axi_gmem2_ARLEN,
    output logic [2:0]              m_axi_gmem2_ARSIZE,
    output logic [1:0]              m_axi_gmem2_ARBURST,
    output logic [3:0]              m_axi_gmem2_ARCACHE,
    output logic [2:0]              m_axi_gmem2_ARPROT,
    input  wire logic               m_axi_gmem2_RVALID,
    output logic                    m_axi_gmem2_RREADY,
    input  wire logic [DATA_WIDTH-1:0] m_axi_gmem2_RDATA,
    input  wire logic [1:0]         m_axi_gmem2_RRESP,
    input  wire logic               m_axi_gmem2_RLAST,
    output logic                    m_axi_gmem2_AWVALID,
    input  wire logic               m_axi_gmem2_AWREADY,
    output logic [ADDR_WIDTH-1:0]   m_axi_gmem2_AWADDR,
    output logic [7:0]              m_axi_gmem2_AWLEN,
    output logic [2:0]              m_axi_gmem2_AWSIZE,
    output logic [1:0]              m_axi_gmem2_AWBURST,
    output logic [3:0]              m_axi_gmem2_AWCACHE,
    output logic [2:0]              m_axi_gmem2_AWPROT,
    output logic                    m_axi_gmem2_WVALID,
    input  wire logic               m_axi_gmem2_WREADY,
    output logic [DATA_WIDTH-1:0]   m_axi_gmem2_WDATA,
    output logic [DATA_WIDTH/8-1:0] m_axi_gmem2_WSTRB,
    output logic                    m_axi_gmem2_WLAST,
    input  wire logic               m_axi_gmem2_BVALID,
    output logic                    m_axi_gmem2_BREADY,
    input  wire logic [1:0]         m_axi_gmem2_BRESP
);

  localparam int unsigned WORDS = 28;  // registers from 0x10 on
  localparam int unsigned A = 0, B = 3, C = 6, M = 9, N = 11, K = 13, LDA = 15, LDB = 17, LDC = 19;
  localparam int unsigned BIAS = 21, SCALE = 24, STATUS = 26, MODE = 27;
  localparam int unsigned ROW_TILES = BLOCK_ROWS / ROWS;
  localparam int unsigned COL_TILES = BLOCK_COLS / COLS;
  localparam int unsigned SKEW = COLS / LANES;
  localparam int unsigned SUM_BITS = 15 + $clog2(DEPTH);

  logic ap_start, ap_done, ap_idle, ap_ready;
  logic [32*WORDS-1:0] regs, args_q;
  logic [7:0] status;

  axil_control #(
      .ADDR_WIDTH(7),
      .WORDS(WORDS),
      .INPUTS(28'b1011_0110_1010_1010_1010_1101_1011),  // a hole behind each
      .OUTPUTS(28'b1 << STATUS)
  ) control (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .awvalid_i(s_axi_control_AWVALID),
      .awready_o(s_axi_control_AWREADY),
      .awaddr_i(s_axi_control_AWADDR),
      .wvalid_i(s_axi_control_WVALID),
      .wready_o(s_axi_control_WREADY),
      .wdata_i(s_axi_control_WDATA),
      .wstrb_i(s_axi_control_WSTRB),
      .bvalid_o(s_axi_control_BVALID),
      .bready_i(s_axi_control_BREADY),
      .bresp_o(s_axi_control_BRESP),
      .arvalid_i(s_axi_control_ARVALID),
      .arready_o(s_axi_control_ARREADY),
      .araddr_i(s_axi_control_ARADDR),
      .rvalid_o(s_axi_control_RVALID),
      .rready_i(s_axi_control_RREADY),
      .rdata_o(s_axi_control_RDATA),
      .rresp_o(s_axi_control_RRESP),
      .regs_o(regs),
      .values_i((32 * WORDS)'(status) << 32 * STATUS),
      .ap_start_o(ap_start),
      .ap_done_i(ap_done),
      .ap_idle_i(ap_idle),
      .ap_ready_i(ap_ready),
      .interrupt_o(interrupt)
  );

  // The reset, a register for each unit. It ends a cycle late, and a start takes longer than that to come.
  localparam int unsigned RUN = 0, JOBS = 1, LOAD_A = 2, LOAD_B = 3, SCHEDULE = 4, ARRAY = 5, SUMS = 6;
  localparam int unsigned QUEUED = 7, COLUMNS = 8, STORE = 9, UNITS = 10;
  logic [UNITS-1:0] rst_nq;

  for (genvar i = 0; i < UNITS; ++i) begin : gen_reset
    replica reset (
        .clk_i (ap_clk),
        .data_i(ap_rst_n),
        .data_o(rst_nq[i])
    );
  end

  // The run. What it works on is taken over at its start: registers may be written for the next one.
  logic running_q, start_q, jobs_busy, storing, store_idle;

  assign ap_done  = running_q && !start_q && !jobs_busy && store_idle;
  assign ap_ready = ap_done;
  assign ap_idle  = !running_q && !ap_start;

  always_ff @(posedge ap_clk) begin
    if (!rst_nq[RUN]) begin
      running_q <= 1'b0;
      start_q   <= 1'b0;
    end else begin
      if (ap_start && !running_q) running_q <= 1'b1;
      else if (ap_done) running_q <= 1'b0;
      start_q <= ap_start && !running_q;
    end
  end

  always_ff @(posedge ap_clk) begin
    if (ap_start && !running_q) args_q <= regs;
  end

  wire [3:0] mode = args_q[32*MODE+:4];  // see ../gemm_epilogue.hpp
  wire [1:0] kind = mode[1:0];
  wire with_bias = mode[2];
  wire relu = mode[3];
  wire with_scale = kind != 2'd0;
  wire wide = kind != 2'd1;
  wire [ADDR_WIDTH-1:0] pitch_a = ADDR_WIDTH'(signed'(args_q[32*LDA+:32]));
  wire [ADDR_WIDTH-1:0] pitch_b = ADDR_WIDTH'(signed'(args_q[32*LDB+:32]));
  wire [ADDR_WIDTH-1:0] elements_c = ADDR_WIDTH'(signed'(args_q[32*LDC+:32]));
  wire [ADDR_WIDTH-1:0] pitch_c = wide ? elements_c << 2 : {elements_c[ADDR_WIDTH-1:2], 2'b00};

  // Jobs, each to all who take part in it.
  logic job_valid, job_first, job_last, job_new_a, job_new_b, job_new_columns;
  logic ready_a, ready_b, ready_schedule, ready_columns, ready_store;
  logic [ADDR_WIDTH-1:0] job_a, job_b, job_c;
  logic [31:0] job_column;
  logic [$clog2(BLOCK_ROWS + 1) - 1:0] job_rows;
  logic [$clog2(BLOCK_COLS + 1) - 1:0] job_cols;
  logic [$clog2(DEPTH + 1) - 1:0] job_depth;
  wire job_ready = ready_a && ready_b && ready_schedule && ready_columns && ready_store;
  wire job = job_valid && job_ready;
  wire job_empty = job_depth == '0;

  gemm_jobs #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .DEPTH(DEPTH),
      .BLOCK_ROWS(BLOCK_ROWS),
      .BLOCK_COLS(BLOCK_COLS)
  ) jobs (
      .clk_i(ap_clk),
      .rst_ni(rst_nq[JOBS]),
      .start_i(start_q),
      .busy_o(jobs_busy),
      .a_i(args_q[32*A+:ADDR_WIDTH]),
      .b_i(args_q[32*B+:ADDR_WIDTH]),
      .c_i(args_q[32*C+:ADDR_WIDTH]),
      .m_i(args_q[32*M+:32]),
      .n_i(args_q[32*N+:32]),
      .k_i(args_q[32*K+:32]),
      .pitch_a_i(pitch_a),
      .pitch_b_i(pitch_b),
      .pitch_c_i(pitch_c),
      .wide_i(wide),
      .valid_o(job_valid),
      .ready_i(job),
      .a_o(job_a),
      .b_o(job_b),
      .c_o(job_c),
      .column_o(job_column),
      .rows_o(job_rows),
      .cols_o(job_cols),
      .depth_o(job_depth),
      .first_o(job_first),
      .last_o(job_last),
      .new_a_o(job_new_a),
      .new_b_o(job_new_b),
      .new_columns_o(job_new_columns)
  );

  // Panels.
  logic loading_a, loading_b, loaded_a, loaded_b, release_a, release_b;
  logic write_a, write_b, write_a_buffer, write_b_buffer;
  logic [$clog2(BLOCK_ROWS) - 1:0] write_a_row;
  logic [$clog2(8 * DEPTH / DATA_WIDTH) - 1:0] write_a_word;
  logic [$clog2(DEPTH) - 1:0] write_b_row;
  logic [$clog2(8 * BLOCK_COLS / DATA_WIDTH) - 1:0] write_b_word;
  logic [DATA_WIDTH-1:0] write_a_data, write_b_data;

  gemm_load #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .DATA_WIDTH(DATA_WIDTH),
      .MAX_ROWS(BLOCK_ROWS),
      .MAX_BYTES(DEPTH),
      .OUTSTANDING(OUTSTANDING)
  ) load_a (
      .clk_i(ap_clk),
      .rst_ni(rst_nq[LOAD_A]),
      .start_i(start_q),
      .release_i(release_a),
      .pitch_i(pitch_a),
      .busy_o(loading_a),
      .job_valid_i(job && job_new_a && !job_empty),
      .job_ready_o(ready_a),
      .job_addr_i(job_a),
      .job_rows_i(job_rows),
      .job_bytes_i(job_depth),
      .write_o(write_a),
      .buffer_o(write_a_buffer),
      .row_o(write_a_row),
      .word_o(write_a_word),
      .data_o(write_a_data),
      .loaded_o(loaded_a),
      .arvalid_o(m_axi_gmem0_ARVALID),
      .arready_i(m_axi_gmem0_ARREADY),
      .araddr_o(m_axi_gmem0_ARADDR),
      .arlen_o(m_axi_gmem0_ARLEN),
      .arsize_o(m_axi_gmem0_ARSIZE),
      .arburst_o(m_axi_gmem0_ARBURST),
      .rvalid_i(m_axi_gmem0_RVALID),
      .rready_o(m_axi_gmem0_RREADY),
      .rdata_i(m_axi_gmem0_RDATA),
      .rlast_i(m_axi_gmem0_RLAST)
  );

  gemm_load #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .DATA_WIDTH(DATA_WIDTH),
      .MAX_ROWS(DEPTH),
      .MAX_BYTES(BLOCK_COLS),
      .OUTSTANDING(OUTSTANDING)
  ) load_b (
      .clk_i(ap_clk),
      .rst_ni(rst_nq[LOAD_B]),
      .start_i(start_q),
      .release_i(release_b),
      .pitch_i(pitch_b),
      .busy_o(loading_b),
      .job_valid_i(job && job_new_b && !job_empty),
      .job_ready_o(ready_b),
      .job_addr_i(job_b),
      .job_rows_i(job_depth),
      .job_bytes_i(job_cols),
      .write_o(write_b),
      .buffer_o(write_b_buffer),
      .row_o(write_b_row),
      .word_o(write_b_word),
      .data_o(write_b_data),
      .loaded_o(loaded_b),
      .arvalid_o(m_axi_gmem1_ARVALID),
      .arready_i(m_axi_gmem1_ARREADY),
      .araddr_o(m_axi_gmem1_ARADDR),
      .arlen_o(m_axi_gmem1_ARLEN),
      .arsize_o(m_axi_gmem1_ARSIZE),
      .arburst_o(m_axi_gmem1_ARBURST),
      .rvalid_i(m_axi_gmem1_RVALID),
      .rready_o(m_axi_gmem1_RREADY),
      .rdata_i(m_axi_gmem1_RDATA),
      .rlast_i(m_axi_gmem1_RLAST)
  );

  // The array and what it is told. A tile begins when the queue has room for its sums.
  logic tile_room, tile_promise, nothing_promised;
  logic multiplies, buffer_a, buffer_b, first, last, from_zero, zero, store;
  logic [$clog2(ROW_TILES) - 1:0] row_tile;
  logic [$clog2(COL_TILES) - 1:0] col_tile;
  logic [$clog2(DEPTH) - 1:0] k;
  logic [$clog2(ROWS + 1) - 1:0] tile_rows;
  logic [$clog2(COLS + 1) - 1:0] tile_cols;

  gemm_schedule #(
      .ROWS(ROWS),
      .COLS(COLS),
      .ROW_TILES(ROW_TILES),
      .COL_TILES(COL_TILES),
      .DEPTH(DEPTH),
      .MIN_STEPS(ROWS * SKEW)
  ) schedule (
      .clk_i(ap_clk),
      .rst_ni(rst_nq[SCHEDULE]),
      .start_i(start_q),
      .room_i(tile_room),
      .promise_o(tile_promise),
      .job_valid_i(job),
      .job_ready_o(ready_schedule),
      .job_rows_i(job_rows),
      .job_cols_i(job_cols),
      .job_depth_i(job_depth),
      .job_first_i(job_first),
      .job_last_i(job_last),
      .job_new_a_i(job_new_a),
      .job_new_b_i(job_new_b),
      .loaded_a_i(loaded_a),
      .loaded_b_i(loaded_b),
      .release_a_o(release_a),
      .release_b_o(release_b),
      .busy_o(multiplies),
      .buffer_a_o(buffer_a),
      .buffer_b_o(buffer_b),
      .row_tile_o(row_tile),
      .col_tile_o(col_tile),
      .k_o(k),
      .first_o(first),
      .last_o(last),
      .rows_o(tile_rows),
      .cols_o(tile_cols),
      .from_zero_o(from_zero),
      .zero_o(zero),
      .store_o(store)
  );

  logic [8*ROWS-1:0] a_bytes;
  logic [8*COLS-1:0] b_bytes;
  logic [ROWS-1:0] first_of_row;

  gemm_panel_a #(
      .DATA_WIDTH(DATA_WIDTH),
      .ROWS(ROWS),
      .TILES(ROW_TILES),
      .DEPTH(DEPTH),
      .SKEW(SKEW)
  ) panel_a (
      .clk_i(ap_clk),
      .write_i(write_a),
      .write_buffer_i(write_a_buffer),
      .write_row_i(write_a_row),
      .write_word_i(write_a_word),
      .write_data_i(write_a_data),
      .buffer_i(buffer_a),
      .tile_i(row_tile),
      .k_i(k),
      .first_i(first),
      .a_o(a_bytes),
      .first_o(first_of_row)
  );

  gemm_panel_b #(
      .DATA_WIDTH(DATA_WIDTH),
      .COLS(COLS),
      .TILES(COL_TILES),
      .DEPTH(DEPTH)
  ) panel_b (
      .clk_i(ap_clk),
      .write_i(write_b),
      .write_buffer_i(write_b_buffer),
      .write_row_i(write_b_row),
      .write_word_i(write_b_word),
      .write_data_i(write_b_data),
      .buffer_i(buffer_b),
      .tile_i(col_tile),
      .k_i(k),
      .b_o(b_bytes)
  );

  // The tile whose last k was the latest: the one that is drained next.
  logic [1:0] last_q;
  logic [$clog2(ROW_TILES) - 1:0] row_tile_q;
  logic [$clog2(COL_TILES) - 1:0] col_tile_q;
  logic [$clog2(ROWS + 1) - 1:0] tile_rows_q;
  logic [$clog2(COLS + 1) - 1:0] tile_cols_q;
  logic from_zero_q, zero_q, store_q;

  always_ff @(posedge ap_clk) begin
    if (!rst_nq[RUN]) last_q <= '0;
    else last_q <= {last_q[0], last};
  end

  always_ff @(posedge ap_clk) begin
    if (last) begin
      row_tile_q  <= row_tile;
      col_tile_q  <= col_tile;
      tile_rows_q <= tile_rows;
      tile_cols_q <= tile_cols;
      from_zero_q <= from_zero;
      zero_q      <= zero;
      store_q     <= store;
    end
  end

  logic drain, drained_valid;
  logic [$clog2(ROWS) - 1:0] drained_row;
  logic [$clog2(COLS / LANES) - 1:0] drained_group;
  logic [32*LANES-1:0] drained;

  gemm_array #(
      .ROWS(ROWS),
      .COLS(COLS),
      .DSP_ROWS(DSP_ROWS),
      .LANES(LANES),
      .SUM_BITS(SUM_BITS)
  ) array (
      .clk_i(ap_clk),
      .rst_ni(rst_nq[ARRAY]),
      .b_i(b_bytes),
      .a_i(a_bytes),
      .first_i(first_of_row),
      .last_i(last_q[1]),
      .drain_o(drain),
      .valid_o(drained_valid),
      .row_o(drained_row),
      .group_o(drained_group),
      .sums_o(drained)
  );

  logic sums_valid, sums_spare, sums_ready;
  logic [32*LANES-1:0] sums;

  gemm_sums #(
      .ROWS(ROWS),
      .COLS(COLS),
      .LANES(LANES),
      .ROW_TILES(ROW_TILES),
      .COL_TILES(COL_TILES)
  ) sums_of_block (
      .clk_i(ap_clk),
      .rst_ni(rst_nq[SUMS]),
      .drain_i(drain),
      .row_tile_i(row_tile_q),
      .col_tile_i(col_tile_q),
      .rows_i(tile_rows_q),
      .cols_i(tile_cols_q),
      .from_zero_i(from_zero_q),
      .zero_i(zero_q),
      .store_i(store_q),
      .valid_i(drained_valid),
      .row_i(drained_row),
      .group_i(drained_group),
      .sums_i(drained),
      .valid_o(sums_valid),
      .sums_o(sums),
      .spare_o(sums_spare)
  );

  // To memory.
  logic queue_valid, queue_ready, columns_ready, columns_take;
  logic [32*LANES-1:0] queue_sums, bias, scale;
  logic [$clog2(BLOCK_COLS / LANES) - 1:0] columns_group;
  wire with_columns = with_bias || with_scale;

  gemm_queue #(
      .WIDTH(32 * LANES),
      .DEPTH(QUEUE)
  ) queue (
      .clk_i(ap_clk),
      .rst_ni(rst_nq[QUEUED]),
      .valid_i(sums_valid),
      .ready_o(sums_ready),
      .data_i(sums),
      .valid_o(queue_valid),
      .ready_i(queue_ready),
      .data_o(queue_sums)
  );

  credits #(
      .TOTAL(QUEUE),
      .TAKE(ROWS * SKEW)
  ) tiles (
      .clk_i(ap_clk),
      .rst_ni(rst_nq[QUEUED]),
      .take_i(tile_promise),
      .give_i({sums_spare, queue_valid && queue_ready}),
      .room_o(tile_room),
      .idle_o(nothing_promised)
  );

  gemm_columns #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .DATA_WIDTH(DATA_WIDTH),
      .COLS(BLOCK_COLS),
      .LANES(LANES)
  ) columns (
      .clk_i(ap_clk),
      .rst_ni(rst_nq[COLUMNS]),
      .start_i(start_q),
      .with_bias_i(with_bias),
      .with_scale_i(with_scale),
      .bias_i(args_q[32*BIAS+:ADDR_WIDTH]),
      .scale_i(args_q[32*SCALE+:ADDR_WIDTH]),
      .job_valid_i(job && job_last && job_new_columns && with_columns),
      .job_ready_o(ready_columns),
      .job_column_i(job_column),
      .job_cols_i(job_cols),
      .ready_o(columns_ready),
      .take_i(columns_take),
      .group_i(columns_group),
      .bias_o(bias),
      .scale_o(scale),
      .arvalid_o(m_axi_gmem2_ARVALID),
      .arready_i(m_axi_gmem2_ARREADY),
      .araddr_o(m_axi_gmem2_ARADDR),
      .arlen_o(m_axi_gmem2_ARLEN),
      .arsize_o(m_axi_gmem2_ARSIZE),
      .arburst_o(m_axi_gmem2_ARBURST),
      .rvalid_i(m_axi_gmem2_RVALID),
      .rready_o(m_axi_gmem2_RREADY),
      .rdata_i(m_axi_gmem2_RDATA),
      .rlast_i(m_axi_gmem2_RLAST)
  );

  gemm_store #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .DATA_WIDTH(DATA_WIDTH),
      .ROWS(ROWS),
      .COLS(COLS),
      .ROW_TILES(ROW_TILES),
      .COL_TILES(COL_TILES),
      .LANES(LANES),
      .OUTSTANDING(OUTSTANDING)
  ) store_c (
      .clk_i(ap_clk),
      .rst_ni(rst_nq[STORE]),
      .pitch_i(pitch_c),
      .kind_i(kind),
      .with_bias_i(with_bias),
      .with_scale_i(with_scale),
      .relu_i(relu),
      .busy_o(storing),
      .idle_o(store_idle),
      .job_valid_i(job && job_last),
      .job_ready_o(ready_store),
      .job_addr_i(job_c),
      .job_rows_i(job_rows),
      .job_cols_i(job_cols),
      .job_new_columns_i(job_new_columns),
      .valid_i(queue_valid),
      .ready_o(queue_ready),
      .sums_i(queue_sums),
      .columns_ready_i(columns_ready),
      .columns_take_o(columns_take),
      .columns_group_o(columns_group),
      .bias_i(bias),
      .scale_i(scale),
      .awvalid_o(m_axi_gmem2_AWVALID),
      .awready_i(m_axi_gmem2_AWREADY),
      .awaddr_o(m_axi_gmem2_AWADDR),
      .awlen_o(m_axi_gmem2_AWLEN),
      .awsize_o(m_axi_gmem2_AWSIZE),
      .awburst_o(m_axi_gmem2_AWBURST),
      .wvalid_o(m_axi_gmem2_WVALID),
      .wready_i(m_axi_gmem2_WREADY),
      .wdata_o(m_axi_gmem2_WDATA),
      .wstrb_o(m_axi_gmem2_WSTRB),
      .wlast_o(m_axi_gmem2_WLAST),
      .bvalid_i(m_axi_gmem2_BVALID),
      .bready_o(m_axi_gmem2_BREADY)
  );

  // A run ends after its last answer: done takes what there is, and the next run begins with none.
  axi_responses #(
      .CHANNELS(4)
  ) responses (
      .clk_i(ap_clk),
      .rst_ni(rst_nq[RUN]),
      .clear_i(ap_done),
      .valid_i({m_axi_gmem2_BVALID && m_axi_gmem2_BREADY,
                m_axi_gmem2_RVALID && m_axi_gmem2_RREADY,
                m_axi_gmem1_RVALID && m_axi_gmem1_RREADY,
                m_axi_gmem0_RVALID && m_axi_gmem0_RREADY}),
      .resp_i({m_axi_gmem2_BRESP, m_axi_gmem2_RRESP, m_axi_gmem1_RRESP, m_axi_gmem0_RRESP}),
      .status_o(status)
  );

  // As HLS drives them: normal memory that may be buffered, no privilege, secure, data.
  assign m_axi_gmem0_ARCACHE = 4'b0011;
  assign m_axi_gmem0_ARPROT  = 3'b000;
  assign m_axi_gmem1_ARCACHE = 4'b0011;
  assign m_axi_gmem1_ARPROT  = 3'b000;
  assign m_axi_gmem2_ARCACHE = 4'b0011;
  assign m_axi_gmem2_ARPROT  = 3'b000;
  assign m_axi_gmem2_AWCACHE = 4'b0011;
  assign m_axi_gmem2_AWPROT  = 3'b000;

  // What is done in a cycle, for those who watch; several at once as a rule.
  wire perf_load = loading_a || loading_b;
  wire perf_compute = multiplies;
  wire perf_drain = storing;

  wire unused = &{1'b0, args_q, sums_ready, nothing_promised, perf_load, perf_compute, perf_drain};

`ifndef SYNTHESIS
  initial assert (ROW_TILES * ROWS == BLOCK_ROWS && COL_TILES * COLS == BLOCK_COLS && SKEW * LANES == COLS)
  else $fatal(1, "gemm: blocks of %0d x %0d on an array of %0d x %0d", BLOCK_ROWS, BLOCK_COLS, ROWS, COLS);
  initial assert (ROWS / 4 + 5 <= ROWS * SKEW)
  else $fatal(1, "gemm: %0d rows begin to drain after the next tile of %0d cycles ends", ROWS, ROWS * SKEW);
  assert property (@(posedge ap_clk) disable iff (!ap_rst_n) ap_start |-> &rst_nq)
  else $error("gemm: a start while units are still in their reset");
  assert property (@(posedge ap_clk) disable iff (!ap_rst_n) sums_valid |-> sums_ready)
  else $error("gemm: sums for which there is no room");
  assert property (@(posedge ap_clk) disable iff (!ap_rst_n) ap_done |-> !queue_valid && !job_valid)
  else $error("gemm: done while there is work left");
`endif

endmodule

`default_nettype wire
