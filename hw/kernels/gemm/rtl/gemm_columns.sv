// gemm_columns: bias and scale of a block's columns, loaded while the block before is being stored.
//
// Values of LANES neighbouring columns are read at once. Which of the two vectors is loaded, the mode
// says; with neither of them there are no jobs.
`default_nettype none

module gemm_columns #(
    parameter int unsigned ADDR_WIDTH = 64,
    parameter int unsigned DATA_WIDTH = 64,
    parameter int unsigned COLS       = 128,  // of a block
    parameter int unsigned LANES      = 4
) (
    input  wire logic                               clk_i,
    input  wire logic                               rst_ni,
    input  wire logic                               start_i,
    input  wire logic                               with_bias_i,
    input  wire logic                               with_scale_i,
    input  wire logic [ADDR_WIDTH-1:0]              bias_i,  // byte addresses
    input  wire logic [ADDR_WIDTH-1:0]              scale_i,
    // jobs: columns of a block
    input  wire logic                               job_valid_i,
    output logic                                    job_ready_o,
    input  wire logic [31:0]                        job_column_i,
    input  wire logic [$clog2(COLS + 1) - 1:0]      job_cols_i,
    // values
    output logic                                    ready_o, // the next job's are there
    input  wire logic                               take_i,  // turn to them
    input  wire logic [$clog2(COLS / LANES) - 1:0]  group_i,
    output logic [32*LANES-1:0]                     bias_o,
    output logic [32*LANES-1:0]                     scale_o,
    // AXI4
    output logic                                    arvalid_o,
    input  wire logic                               arready_i,
    output logic [ADDR_WIDTH-1:0]                   araddr_o,
    output logic [7:0]                              arlen_o,
    output logic [2:0]                              arsize_o,
    output logic [1:0]                              arburst_o,
    input  wire logic                               rvalid_i,
    output logic                                    rready_o,
    input  wire logic [DATA_WIDTH-1:0]              rdata_i,
    input  wire logic                               rlast_i
);

  localparam int unsigned COLS_WIDTH = $clog2(COLS + 1);
  localparam int unsigned BYTES_WIDTH = COLS_WIDTH + 2;
  localparam int unsigned BANKS = 32 * LANES / DATA_WIDTH;
  localparam int unsigned BANK_BITS = $clog2(BANKS);
  localparam int unsigned GROUP_BITS = $clog2(COLS / LANES);
  localparam int unsigned WORD_BITS = GROUP_BITS + BANK_BITS;

  // Copies for this unit, a cycle late: the first job comes after.
  logic with_bias_q, with_scale_q;
  logic [ADDR_WIDTH-1:0] bias_q, scale_q;

  replica #(
      .WIDTH(2 * ADDR_WIDTH + 2)
  ) arguments (
      .clk_i,
      .data_i({with_bias_i, with_scale_i, bias_i, scale_i}),
      .data_o({with_bias_q, with_scale_q, bias_q, scale_q})
  );

  // Ask for bias, then for scale.
  logic [2:0] jobs_count;
  logic idle;
  logic job_valid, cmd_ready, asked_bias_q;
  logic [31:0] column;
  logic [COLS_WIDTH-1:0] cols;
  logic [1:0] free_q, ready_q;
  logic valid, last;
  logic [DATA_WIDTH-1:0] data;
  wire asks_scale = !with_bias_q || asked_bias_q;
  wire ask = job_valid && free_q != '0;
  wire asked = ask && cmd_ready;
  wire job_asked = asked && (asks_scale || !with_scale_q);

  fifo #(
      .WIDTH(32 + COLS_WIDTH),
      .DEPTH(4)
  ) jobs (
      .clk_i,
      .rst_ni,
      .valid_i(job_valid_i),
      .ready_o(job_ready_o),
      .data_i ({job_column_i, job_cols_i}),
      .valid_o(job_valid),
      .ready_i(job_asked),
      .data_o ({column, cols}),
      .count_o(jobs_count)
  );

  axi_read #(
      .ADDR_WIDTH (ADDR_WIDTH),
      .DATA_WIDTH (DATA_WIDTH),
      .BYTES_WIDTH(BYTES_WIDTH),
      .OUTSTANDING(2),
      .DEPTH      (32)
  ) read (
      .clk_i,
      .rst_ni,
      .cmd_valid_i(ask),
      .cmd_ready_o(cmd_ready),
      .cmd_addr_i ((asks_scale ? scale_q : bias_q) + (ADDR_WIDTH'(column) << 2)),
      .cmd_bytes_i({cols, 2'b00}),
      .valid_o    (valid),
      .ready_i    (1'b1),
      .data_o     (data),
      .last_o     (last),
      .idle_o     (idle),
      .arvalid_o,
      .arready_i,
      .araddr_o,
      .arlen_o,
      .arsize_o,
      .arburst_o,
      .rvalid_i,
      .rready_o,
      .rdata_i,
      .rlast_i
  );

  // Take them in.
  logic [WORD_BITS-1:0] word_q;
  logic write_scale_q, write_buffer_q, read_buffer_q, old_q;
  wire writes_scale = !with_bias_q || write_scale_q;
  wire loaded = valid && last && (writes_scale || !with_scale_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      asked_bias_q   <= 1'b0;
      write_scale_q  <= 1'b0;
      write_buffer_q <= 1'b0;
      read_buffer_q  <= 1'b1;  // the first job goes to buffer 0
      old_q          <= 1'b0;
      word_q         <= '0;
      free_q         <= 2'd2;
      ready_q        <= '0;
    end else begin
      if (asked) asked_bias_q <= !job_asked;
      if (valid) word_q <= last ? '0 : word_q + 1'b1;
      if (valid && last) write_scale_q <= !loaded;
      if (loaded) write_buffer_q <= !write_buffer_q;
      if (take_i) begin
        read_buffer_q <= !read_buffer_q;
        old_q         <= 1'b1;
      end
      free_q  <= free_q + 2'(take_i && old_q) - 2'(job_asked);
      ready_q <= ready_q + 2'(loaded) - 2'(take_i);
    end
  end

  assign ready_o = ready_q != '0;

  for (genvar i = 0; i < BANKS; ++i) begin : gen_bank
    logic [DATA_WIDTH-1:0] bias[2 * COLS / LANES], scale[2 * COLS / LANES];
    wire chosen;
    if (BANKS == 1) begin : gen_one
      assign chosen = 1'b1;
    end else begin : gen_several
      assign chosen = word_q[BANK_BITS-1:0] == BANK_BITS'(i);
    end

    always_ff @(posedge clk_i) begin
      if (valid && chosen && !writes_scale) bias[{write_buffer_q, word_q[WORD_BITS-1-:GROUP_BITS]}] <= data;
    end
    always_ff @(posedge clk_i) begin
      if (valid && chosen && writes_scale) scale[{write_buffer_q, word_q[WORD_BITS-1-:GROUP_BITS]}] <= data;
    end

    assign bias_o[DATA_WIDTH*i+:DATA_WIDTH]  = bias[{read_buffer_q, group_i}];
    assign scale_o[DATA_WIDTH*i+:DATA_WIDTH] = scale[{read_buffer_q, group_i}];
  end

  wire unused = &{1'b0, jobs_count, idle};

`ifndef SYNTHESIS
  initial assert (BANKS >= 1 && BANKS * DATA_WIDTH == 32 * LANES)
  else $fatal(1, "gemm_columns: DATA_WIDTH is %0d, expected at most %0d, a group of sums", DATA_WIDTH, 32 * LANES);
  assert property (@(posedge clk_i) disable iff (!rst_ni) take_i |-> ready_o)
  else $error("gemm_columns: columns are used before they are there");
`endif

endmodule

`default_nettype wire
