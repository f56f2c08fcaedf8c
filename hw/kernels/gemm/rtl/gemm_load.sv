// gemm_load: copies panels of a matrix from memory to one of two buffers, a row of bytes at a time.
//
// A job waits until a buffer is free (release_i frees the older one) and says loaded_o with its last
// word. The rows of the next job are asked for while those of the one before arrive.
`default_nettype none

module gemm_load #(
    parameter int unsigned ADDR_WIDTH  = 64,
    parameter int unsigned DATA_WIDTH  = 64,
    parameter int unsigned MAX_ROWS    = 128,
    parameter int unsigned MAX_BYTES   = 256,
    parameter int unsigned OUTSTANDING = 8
) (
    input  wire logic                                    clk_i,
    input  wire logic                                    rst_ni,
    input  wire logic                                    start_i,   // both buffers are free
    input  wire logic                                    release_i,
    input  wire logic [ADDR_WIDTH-1:0]                   pitch_i,   // bytes from row to row
    output logic                                         busy_o,
    // jobs
    input  wire logic                                    job_valid_i,
    output logic                                         job_ready_o,
    input  wire logic [ADDR_WIDTH-1:0]                   job_addr_i,
    input  wire logic [$clog2(MAX_ROWS + 1) - 1:0]       job_rows_i,
    input  wire logic [$clog2(MAX_BYTES + 1) - 1:0]      job_bytes_i,
    // words for the buffer
    output logic                                         write_o,
    output logic                                         buffer_o,
    output logic [$clog2(MAX_ROWS) - 1:0]                row_o,
    output logic [$clog2(8 * MAX_BYTES / DATA_WIDTH) - 1:0] word_o,
    output logic [DATA_WIDTH-1:0]                        data_o,
    output logic                                         loaded_o,
    // AXI4
    output logic                                         arvalid_o,
    input  wire logic                                    arready_i,
    output logic [ADDR_WIDTH-1:0]                        araddr_o,
    output logic [7:0]                                   arlen_o,
    output logic [2:0]                                   arsize_o,
    output logic [1:0]                                   arburst_o,
    input  wire logic                                    rvalid_i,
    output logic                                         rready_o,
    input  wire logic [DATA_WIDTH-1:0]                   rdata_i,
    input  wire logic                                    rlast_i
);

  localparam int unsigned ROWS_WIDTH = $clog2(MAX_ROWS + 1);
  localparam int unsigned BYTES_WIDTH = $clog2(MAX_BYTES + 1);
  localparam int unsigned ROW_BITS = $clog2(MAX_ROWS);
  localparam int unsigned WORD_BITS = $clog2(8 * MAX_BYTES / DATA_WIDTH);

  // A copy for this unit, a cycle late: the first job's second row comes long after.
  logic [ADDR_WIDTH-1:0] pitch_q;

  replica #(
      .WIDTH(ADDR_WIDTH)
  ) arguments (
      .clk_i,
      .data_i(pitch_i),
      .data_o(pitch_q)
  );

  // Jobs in turn, each into a buffer of its own.
  logic job_valid, shape_ready;
  logic [2:0] jobs_count;
  logic [ADDR_WIDTH-1:0] job_addr;
  logic [ROWS_WIDTH-1:0] job_rows;
  logic [BYTES_WIDTH-1:0] job_bytes;
  logic [1:0] free_q;
  logic cmd_ready;
  logic active_q;
  logic [ADDR_WIDTH-1:0] addr_q;
  logic [ROWS_WIDTH-1:0] rows_left_q;
  logic [BYTES_WIDTH-1:0] bytes_q;
  wire take = job_valid && shape_ready && free_q != '0 && !active_q;

  fifo #(
      .WIDTH(ADDR_WIDTH + ROWS_WIDTH + BYTES_WIDTH),
      .DEPTH(4)
  ) jobs (
      .clk_i,
      .rst_ni,
      .valid_i(job_valid_i),
      .ready_o(job_ready_o),
      .data_i ({job_addr_i, job_rows_i, job_bytes_i}),
      .valid_o(job_valid),
      .ready_i(take),
      .data_o ({job_addr, job_rows, job_bytes}),
      .count_o(jobs_count)
  );

  always_ff @(posedge clk_i) begin
    if (take) begin
      addr_q      <= job_addr;
      rows_left_q <= job_rows;
      bytes_q     <= job_bytes;
    end else if (active_q && cmd_ready) begin
      addr_q      <= addr_q + pitch_q;
      rows_left_q <= rows_left_q - 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      active_q <= 1'b0;
      free_q   <= 2'd2;
    end else begin
      if (take) active_q <= 1'b1;
      else if (cmd_ready && rows_left_q == 1) active_q <= 1'b0;
      if (start_i) free_q <= 2'd2;
      else free_q <= free_q + 2'(release_i) - 2'(take);
    end
  end

  // Rows that are under way, and the words of the buffer.
  logic valid, last, idle, shape_valid;
  logic [ROWS_WIDTH-1:0] rows;
  logic [ROW_BITS-1:0] row_q;
  logic [WORD_BITS-1:0] word_q;
  logic buffer_q;
  logic [1:0] rows_count;

  fifo #(
      .WIDTH(ROWS_WIDTH),
      .DEPTH(2)
  ) shapes (
      .clk_i,
      .rst_ni,
      .valid_i(take),
      .ready_o(shape_ready),
      .data_i (job_rows),
      .valid_o(shape_valid),
      .ready_i(loaded_o),
      .data_o (rows),
      .count_o(rows_count)
  );

  axi_read #(
      .ADDR_WIDTH (ADDR_WIDTH),
      .DATA_WIDTH (DATA_WIDTH),
      .BYTES_WIDTH(BYTES_WIDTH),
      .OUTSTANDING(OUTSTANDING)
  ) read (
      .clk_i,
      .rst_ni,
      .cmd_valid_i(active_q),
      .cmd_ready_o(cmd_ready),
      .cmd_addr_i (addr_q),
      .cmd_bytes_i(bytes_q),
      .valid_o    (valid),
      .ready_i    (1'b1),
      .data_o,
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

  assign write_o  = valid;
  assign buffer_o = buffer_q;
  assign row_o    = row_q;
  assign word_o   = word_q;
  assign loaded_o = valid && last && ROWS_WIDTH'(row_q) == rows - 1'b1;
  assign busy_o   = active_q || !idle;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || start_i) begin
      buffer_q <= 1'b0;
      row_q    <= '0;
      word_q   <= '0;
    end else if (valid) begin
      word_q <= last ? '0 : word_q + 1'b1;
      if (loaded_o) row_q <= '0;
      else if (last) row_q <= row_q + 1'b1;
      if (loaded_o) buffer_q <= !buffer_q;
    end
  end

  wire unused = &{1'b0, jobs_count, rows_count, shape_valid};

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni) valid |-> shape_valid)
  else $error("gemm_load: a word that belongs to no job");
  assert property (@(posedge clk_i) disable iff (!rst_ni) free_q <= 2'd2)
  else $error("gemm_load: %0d of two buffers are free", free_q);
`endif

endmodule

`default_nettype wire
