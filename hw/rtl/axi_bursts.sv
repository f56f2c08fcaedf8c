// axi_bursts: cuts "so many bytes from this address" into AXI bursts of whole bus words.
//
// Every burst but the first starts at a multiple of MAX_BURST words, so none crosses a 4 KB boundary
// (AXI4 A3.4.1) as long as MAX_BURST words divide 4 KB. A burst a cycle; a command of 0 bytes is
// taken and gives none.
`default_nettype none

module axi_bursts #(
    parameter int unsigned ADDR_WIDTH  = 64,
    parameter int unsigned DATA_WIDTH  = 32,  // bits of a bus word
    parameter int unsigned BYTES_WIDTH = 32,  // bits of a command's length
    parameter int unsigned MAX_BURST   = 16   // words; a power of two
) (
    input  wire logic                               clk_i,
    input  wire logic                               rst_ni,
    input  wire logic                               cmd_valid_i,
    output logic                                    cmd_ready_o,
    input  wire logic [ADDR_WIDTH-1:0]              cmd_addr_i,    // of the first byte
    input  wire logic [BYTES_WIDTH-1:0]             cmd_bytes_i,
    output logic                                    burst_valid_o,
    input  wire logic                               burst_ready_i,
    output logic [ADDR_WIDTH-1:0]                   burst_addr_o,  // of a bus word
    output logic [7:0]                              burst_len_o,   // words - 1, as AxLEN
    output logic                                    burst_last_o,  // the last one of its command
    output logic [$clog2(DATA_WIDTH / 8) - 1:0]     burst_start_o, // lane of the command's first byte
    output logic [$clog2(DATA_WIDTH / 8) - 1:0]     burst_end_o,   // lane of the command's last byte
    output logic                                    busy_o         // bursts are left
);

  localparam int unsigned WORD_BYTES = DATA_WIDTH / 8;
  localparam int unsigned LANE_BITS = $clog2(WORD_BYTES);
  localparam int unsigned INDEX_BITS = $clog2(MAX_BURST);
  localparam int unsigned INDEX_WIDTH = ADDR_WIDTH - LANE_BITS;
  localparam int unsigned SPAN_WIDTH = BYTES_WIDTH + 1;
  // A short command still has to be compared with a whole burst.
  localparam int unsigned WORDS_WIDTH =
      SPAN_WIDTH - LANE_BITS > INDEX_BITS + 1 ? SPAN_WIDTH - LANE_BITS : INDEX_BITS + 1;

  logic [INDEX_WIDTH-1:0] index_q;  // of the next burst's first word
  logic [WORDS_WIDTH-1:0] words_q;  // left in the command
  logic [LANE_BITS-1:0] start_q, end_q;

  wire [LANE_BITS-1:0] lane = cmd_addr_i[LANE_BITS-1:0];
  wire [SPAN_WIDTH-1:0] last_byte = SPAN_WIDTH'(cmd_bytes_i) + SPAN_WIDTH'(lane) - 1'b1;
  wire [INDEX_BITS:0] room = (INDEX_BITS + 1)'(MAX_BURST) - {1'b0, index_q[INDEX_BITS-1:0]};
  wire fits = words_q <= WORDS_WIDTH'(room);
  wire [INDEX_BITS:0] beats = fits ? (INDEX_BITS + 1)'(words_q) : room;
  wire taken = burst_valid_o && burst_ready_i;

  assign busy_o        = words_q != '0;
  assign burst_valid_o = busy_o;
  assign burst_addr_o  = {index_q, LANE_BITS'(0)};
  assign burst_len_o   = 8'(beats) - 8'd1;
  assign burst_last_o  = fits;
  assign burst_start_o = start_q;
  assign burst_end_o   = end_q;
  assign cmd_ready_o   = !busy_o || (taken && fits);

  always_ff @(posedge clk_i) begin
    if (taken) index_q <= index_q + INDEX_WIDTH'(beats);
    if (cmd_valid_i && cmd_ready_o) begin
      index_q <= cmd_addr_i[ADDR_WIDTH-1:LANE_BITS];
      start_q <= lane;
      end_q   <= last_byte[LANE_BITS-1:0];
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      words_q <= '0;
    end else begin
      if (taken) words_q <= words_q - WORDS_WIDTH'(beats);
      if (cmd_valid_i && cmd_ready_o) begin
        words_q <= cmd_bytes_i == '0 ? '0 : WORDS_WIDTH'(last_byte[SPAN_WIDTH-1:LANE_BITS]) + 1'b1;
      end
    end
  end

`ifndef SYNTHESIS
  initial assert (DATA_WIDTH >= 16 && 8 * 2 ** LANE_BITS == DATA_WIDTH)
  else $fatal(1, "axi_bursts: DATA_WIDTH is %0d, expected 16, 32, 64 ...", DATA_WIDTH);
  initial assert (BYTES_WIDTH >= LANE_BITS)
  else $fatal(1, "axi_bursts: BYTES_WIDTH is %0d, expected at least %0d", BYTES_WIDTH, LANE_BITS);
  initial assert (MAX_BURST >= 2 && MAX_BURST <= 256 && 2 ** INDEX_BITS == MAX_BURST)
  else $fatal(1, "axi_bursts: MAX_BURST is %0d, expected a power of two in 2..256", MAX_BURST);
  initial assert (MAX_BURST * WORD_BYTES <= 4096)
  else $fatal(1, "axi_bursts: a burst of %0d bytes is longer than 4 KB", MAX_BURST * WORD_BYTES);
  assert property (@(posedge clk_i) disable iff (!rst_ni) burst_valid_o |->
      32'(burst_addr_o[11:0]) + WORD_BYTES * (32'(burst_len_o) + 1) <= 4096)
  else $error("axi_bursts: the burst at 0x%h crosses a 4 KB boundary", burst_addr_o);
`endif

endmodule

`default_nettype wire
