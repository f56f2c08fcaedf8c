// axi_write: writes a stream of words to ranges of bytes through an AXI4 write port.
//
// A command of n bytes takes ceil(n / bytes of a word) words from the stream; the first byte is in
// the lowest lane of the first word, and bytes past the end are not written. With REALIGN the address
// may be any; without, its lowest bits are dropped. Addresses go ahead of the data by at most
// OUTSTANDING bursts. idle_o says that everything is in memory: every burst has been answered.
`default_nettype none

module axi_write #(
    parameter int unsigned ADDR_WIDTH  = 64,
    parameter int unsigned DATA_WIDTH  = 32,
    parameter int unsigned BYTES_WIDTH = 32,  // bits of a command's length
    parameter int unsigned MAX_BURST   = 16,  // words
    parameter int unsigned OUTSTANDING = 8,   // bursts without an answer; a power of two
    parameter bit          REALIGN     = 1'b1
) (
    input  wire logic                   clk_i,
    input  wire logic                   rst_ni,
    // where to write
    input  wire logic                   cmd_valid_i,
    output logic                        cmd_ready_o,
    input  wire logic [ADDR_WIDTH-1:0]  cmd_addr_i,   // of the first byte
    input  wire logic [BYTES_WIDTH-1:0] cmd_bytes_i,  // 0 writes nothing
    // what to write
    input  wire logic                   valid_i,
    output logic                        ready_o,
    input  wire logic [DATA_WIDTH-1:0]  data_i,
    output logic                        idle_o,       // no command running, every burst answered
    // AXI4
    output logic                        awvalid_o,
    input  wire logic                   awready_i,
    output logic [ADDR_WIDTH-1:0]       awaddr_o,
    output logic [7:0]                  awlen_o,
    output logic [2:0]                  awsize_o,
    output logic [1:0]                  awburst_o,
    output logic                        wvalid_o,
    input  wire logic                   wready_i,
    output logic [DATA_WIDTH-1:0]       wdata_o,
    output logic [DATA_WIDTH/8-1:0]     wstrb_o,
    output logic                        wlast_o,
    input  wire logic                   bvalid_i,
    output logic                        bready_o
);

  localparam int unsigned WORD_BYTES = DATA_WIDTH / 8;
  localparam int unsigned LANE_BITS = $clog2(WORD_BYTES);
  localparam int unsigned COUNT_BITS = $clog2(OUTSTANDING + 1);
  localparam int unsigned MARK_BITS = 9 + 2 * LANE_BITS;

  // Address channel.
  logic burst_valid, burst_last, bursts_left, marks_ready;
  logic [LANE_BITS-1:0] burst_start, burst_end;
  logic [COUNT_BITS-1:0] unanswered_q;
  wire asked = awvalid_o && awready_i;
  wire [ADDR_WIDTH-1:0] first_byte =
      REALIGN ? cmd_addr_i : {cmd_addr_i[ADDR_WIDTH-1:LANE_BITS], LANE_BITS'(0)};

  assign awvalid_o = burst_valid && marks_ready && unanswered_q != COUNT_BITS'(OUTSTANDING);
  assign awsize_o  = 3'(LANE_BITS);
  assign awburst_o = 2'b01;  // INCR

  axi_bursts #(
      .ADDR_WIDTH(ADDR_WIDTH),
      .DATA_WIDTH(DATA_WIDTH),
      .BYTES_WIDTH(BYTES_WIDTH),
      .MAX_BURST(MAX_BURST)
  ) bursts (
      .clk_i,
      .rst_ni,
      .cmd_valid_i,
      .cmd_ready_o,
      .cmd_addr_i(first_byte),
      .cmd_bytes_i,
      .burst_valid_o(burst_valid),
      .burst_ready_i(asked),
      .burst_addr_o(awaddr_o),
      .burst_len_o(awlen_o),
      .burst_last_o(burst_last),
      .burst_start_o(burst_start),
      .burst_end_o(burst_end),
      .busy_o(bursts_left)
  );

  // Bursts whose address went out and whose data did not, oldest first.
  logic mark_valid, mark_last;
  logic [7:0] mark_len;
  logic [LANE_BITS-1:0] mark_start, mark_end;
  logic [COUNT_BITS-1:0] marks_count;
  wire sent = wvalid_o && wready_i;

  fifo #(
      .WIDTH(MARK_BITS),
      .DEPTH(OUTSTANDING)
  ) marks (
      .clk_i,
      .rst_ni,
      .valid_i(asked),
      .ready_o(marks_ready),
      .data_i ({burst_last, awlen_o, burst_start, burst_end}),
      .valid_o(mark_valid),
      .ready_i(sent && wlast_o),
      .data_o ({mark_last, mark_len, mark_start, mark_end}),
      .count_o(marks_count)
  );

  // Data channel.
  logic [7:0] beat_q;
  logic first_q;  // the next word is the first one of its command
  wire final_word = mark_last && wlast_o;
  wire needs_word = !(REALIGN && final_word && mark_end < mark_start);

  assign wvalid_o = mark_valid && (valid_i || !needs_word);
  assign wlast_o  = beat_q == mark_len;
  assign ready_o  = mark_valid && wready_i && needs_word;

  always_comb begin
    for (int unsigned lane = 0; lane < WORD_BYTES; ++lane) begin
      wstrb_o[lane] = !(first_q && LANE_BITS'(lane) < mark_start)
          && !(final_word && LANE_BITS'(lane) > mark_end);
    end
  end

  if (REALIGN) begin : gen_realign
    logic [DATA_WIDTH-1:0] before_q;  // the stream's word before this one
    wire [LANE_BITS:0] back = (LANE_BITS + 1)'(WORD_BYTES) - {1'b0, mark_start};
    // The stream may go on to the next command's words while the rest of this one waits for WREADY.
    wire [DATA_WIDTH-1:0] above = needs_word ? data_i : '0;
    assign wdata_o = DATA_WIDTH'({above, before_q} >> {back, 3'b0});
    always_ff @(posedge clk_i) begin
      if (valid_i && ready_o) before_q <= data_i;
    end
  end else begin : gen_aligned
    assign wdata_o = data_i;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_q  <= '0;
      first_q <= 1'b1;
    end else if (sent) begin
      beat_q  <= wlast_o ? '0 : beat_q + 1'b1;
      first_q <= final_word;
    end
  end

  // Response channel.
  assign bready_o = 1'b1;
  assign idle_o   = !bursts_left && unanswered_q == '0 && marks_count == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      unanswered_q <= '0;
    end else begin
      if (asked && !bvalid_i) unanswered_q <= unanswered_q + 1'b1;
      if (bvalid_i && !asked) unanswered_q <= unanswered_q - 1'b1;
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      awvalid_o && !awready_i |=> awvalid_o && $stable(awaddr_o) && $stable(awlen_o))
  else $error("axi_write: the write address changed before it was taken");
  assert property (@(posedge clk_i) disable iff (!rst_ni) wvalid_o && !wready_i |=>
      wvalid_o && $stable(wdata_o) && $stable(wstrb_o) && $stable(wlast_o))
  else $error("axi_write: a word that was not taken yet has changed");
  assert property (@(posedge clk_i) disable iff (!rst_ni) bvalid_i |-> unanswered_q != '0)
  else $error("axi_write: an answer to no burst");
`endif

endmodule

`default_nettype wire
