// vadd: c = a + b over float32 vectors of any length. The RTL twin of ../vadd.cpp.
//
//   gmem0 -> axi_read a --.
//                          f32_add -> axi_write c -> gmem2
//   gmem1 -> axi_read b --'
//
// A start hands one command of 4 n bytes to each of the three; from there on everything moves by
// valid and ready alone, an element a cycle. The run is over when memory has answered every write.
`default_nettype none

module vadd #(
    parameter int unsigned MAX_BURST   = 16,  // the longest burst of an AXI3 port of the Zynq-7000 PS
    parameter int unsigned OUTSTANDING = 8    // DDR answers after 37 cycles, 85 at worst: 6 needed
) (
    input  wire logic        ap_clk,
    input  wire logic        ap_rst_n,
    /* verilator lint_off SYMRSVDWORD */  // the name Vitis HLS gives it is a macro in some C headers
    output logic             interrupt,
    /* verilator lint_on SYMRSVDWORD */
    // registers: 0x10 a, 0x1c b, 0x28 c (64 bits each), 0x34 n; behind those of HLS 0x3c, what memory
    // has answered: bits 1:0 gmem0, 3:2 gmem1, 5:4 gmem2, see axi_responses
    input  wire logic        s_axi_control_AWVALID,
    output logic             s_axi_control_AWREADY,
    input  wire logic [5:0]  s_axi_control_AWADDR,
    input  wire logic        s_axi_control_WVALID,
    output logic             s_axi_control_WREADY,
    input  wire logic [31:0] s_axi_control_WDATA,
    input  wire logic [3:0]  s_axi_control_WSTRB,
    output logic             s_axi_control_BVALID,
    input  wire logic        s_axi_control_BREADY,
    output logic [1:0]       s_axi_control_BRESP,
    input  wire logic        s_axi_control_ARVALID,
    output logic             s_axi_control_ARREADY,
    input  wire logic [5:0]  s_axi_control_ARADDR,
    output logic             s_axi_control_RVALID,
    input  wire logic        s_axi_control_RREADY,
    output logic [31:0]      s_axi_control_RDATA,
    output logic [1:0]       s_axi_control_RRESP,
    // a
    output logic             m_axi_gmem0_ARVALID,
    input  wire logic        m_axi_gmem0_ARREADY,
    output logic [63:0]      m_axi_gmem0_ARADDR,
    output logic [7:0]       m_axi_gmem0_ARLEN,
    output logic [2:0]       m_axi_gmem0_ARSIZE,
    output logic [1:0]       m_axi_gmem0_ARBURST,
    output logic [3:0]       m_axi_gmem0_ARCACHE,
    output logic [2:0]       m_axi_gmem0_ARPROT,
    input  wire logic        m_axi_gmem0_RVALID,
    output logic             m_axi_gmem0_RREADY,
    input  wire logic [31:0] m_axi_gmem0_RDATA,
    input  wire logic [1:0]  m_axi_gmem0_RRESP,
    input  wire logic        m_axi_gmem0_RLAST,
    // b
    output logic             m_axi_gmem1_ARVALID,
    input  wire logic        m_axi_gmem1_ARREADY,
    output logic [63:0]      m_axi_gmem1_ARADDR,
    output logic [7:0]       m_axi_gmem1_ARLEN,
    output logic [2:0]       m_axi_gmem1_ARSIZE,
    output logic [1:0]       m_axi_gmem1_ARBURST,
    output logic [3:0]       m_axi_gmem1_ARCACHE,
    output logic [2:0]       m_axi_gmem1_ARPROT,
    input  wire logic        m_axi_gmem1_RVALID,
    output logic             m_axi_gmem1_RREADY,
    input  wire logic [31:0] m_axi_gmem1_RDATA,
    input  wire logic [1:0]  m_axi_gmem1_RRESP,
    input  wire logic        m_axi_gmem1_RLAST,
    // c
    output logic             m_axi_gmem2_AWVALID,
    input  wire logic        m_axi_gmem2_AWREADY,
    output logic [63:0]      m_axi_gmem2_AWADDR,
    output logic [7:0]       m_axi_gmem2_AWLEN,
    output logic [2:0]       m_axi_gmem2_AWSIZE,
    output logic [1:0]       m_axi_gmem2_AWBURST,
    output logic [3:0]       m_axi_gmem2_AWCACHE,
    output logic [2:0]       m_axi_gmem2_AWPROT,
    output logic             m_axi_gmem2_WVALID,
    input  wire logic        m_axi_gmem2_WREADY,
    output logic [31:0]      m_axi_gmem2_WDATA,
    output logic [3:0]       m_axi_gmem2_WSTRB,
    output logic             m_axi_gmem2_WLAST,
    input  wire logic        m_axi_gmem2_BVALID,
    output logic             m_axi_gmem2_BREADY,
    input  wire logic [1:0]  m_axi_gmem2_BRESP
);

  localparam int unsigned WORDS = 12;  // registers from 0x10 on
  localparam int unsigned A = 0, B = 3, C = 6, N = 9, STATUS = 11;
  localparam int unsigned BYTES_WIDTH = 33;  // 4 * (2**31 - 1) bytes

  logic ap_start, ap_done, ap_idle, ap_ready;
  logic [32*WORDS-1:0] regs;
  logic [5:0] status;

  axil_control #(
      .ADDR_WIDTH(6),
      .WORDS(WORDS),
      .INPUTS(12'b0010_1101_1011),  // n; c; b; a, with a hole behind each pointer
      .OUTPUTS(12'b1 << STATUS)
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

  wire [31:0] n = regs[32*N+:32];
  wire positive = !n[31] && n != '0;
  wire [BYTES_WIDTH-1:0] nbytes = {n[30:0], 2'b00};

  // The run: in its first cycle the commands go out, each of the three units takes its own at once.
  logic running_q;
  logic a_idle, b_idle, c_idle;
  wire launch = ap_start && !running_q && positive;
  wire finished = running_q && a_idle && b_idle && c_idle;

  assign ap_done  = finished || (ap_start && !running_q && !positive);
  assign ap_ready = ap_done;
  assign ap_idle  = !running_q && !ap_start;

  always_ff @(posedge ap_clk) begin
    if (!ap_rst_n) running_q <= 1'b0;
    else if (launch) running_q <= 1'b1;
    else if (finished) running_q <= 1'b0;
  end

  logic a_valid, b_valid, c_valid, add_ready, c_ready;
  logic a_last, b_last, c_last;
  logic a_taken, b_taken, c_taken;  // the commands
  logic [31:0] a_word, b_word, c_word;

  axi_read #(
      .BYTES_WIDTH(BYTES_WIDTH),
      .MAX_BURST(MAX_BURST),
      .OUTSTANDING(OUTSTANDING),
      .REALIGN(1'b0)
  ) read_a (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .cmd_valid_i(launch),
      .cmd_ready_o(a_taken),
      .cmd_addr_i(regs[32*A+:64]),
      .cmd_bytes_i(nbytes),
      .valid_o(a_valid),
      .ready_i(add_ready && b_valid),
      .data_o(a_word),
      .last_o(a_last),
      .idle_o(a_idle),
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

  axi_read #(
      .BYTES_WIDTH(BYTES_WIDTH),
      .MAX_BURST(MAX_BURST),
      .OUTSTANDING(OUTSTANDING),
      .REALIGN(1'b0)
  ) read_b (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .cmd_valid_i(launch),
      .cmd_ready_o(b_taken),
      .cmd_addr_i(regs[32*B+:64]),
      .cmd_bytes_i(nbytes),
      .valid_o(b_valid),
      .ready_i(add_ready && a_valid),
      .data_o(b_word),
      .last_o(b_last),
      .idle_o(b_idle),
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

  f32_add add (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .valid_i(a_valid && b_valid),
      .ready_o(add_ready),
      .a_i(a_word),
      .b_i(b_word),
      .tag_i(a_last),
      .valid_o(c_valid),
      .ready_i(c_ready),
      .sum_o(c_word),
      .tag_o(c_last)
  );

  axi_write #(
      .BYTES_WIDTH(BYTES_WIDTH),
      .MAX_BURST(MAX_BURST),
      .OUTSTANDING(OUTSTANDING),
      .REALIGN(1'b0)
  ) write_c (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .cmd_valid_i(launch),
      .cmd_ready_o(c_taken),
      .cmd_addr_i(regs[32*C+:64]),
      .cmd_bytes_i(nbytes),
      .valid_i(c_valid),
      .ready_o(c_ready),
      .data_i(c_word),
      .idle_o(c_idle),
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
      .CHANNELS(3)
  ) responses (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .clear_i(ap_done),
      .valid_i({m_axi_gmem2_BVALID && m_axi_gmem2_BREADY,
                m_axi_gmem1_RVALID && m_axi_gmem1_RREADY,
                m_axi_gmem0_RVALID && m_axi_gmem0_RREADY}),
      .resp_i({m_axi_gmem2_BRESP, m_axi_gmem1_RRESP, m_axi_gmem0_RRESP}),
      .status_o(status)
  );

  // As HLS drives them: normal memory that may be buffered, no privilege, secure, data.
  assign m_axi_gmem0_ARCACHE = 4'b0011;
  assign m_axi_gmem0_ARPROT  = 3'b000;
  assign m_axi_gmem1_ARCACHE = 4'b0011;
  assign m_axi_gmem1_ARPROT  = 3'b000;
  assign m_axi_gmem2_AWCACHE = 4'b0011;
  assign m_axi_gmem2_AWPROT  = 3'b000;

  // The word behind each pointer is a hole in the register map.
  wire unused = &{1'b0, b_last, c_last, a_taken, b_taken, c_taken, regs};

`ifndef SYNTHESIS
  assert property (@(posedge ap_clk) disable iff (!ap_rst_n) launch |-> a_taken && b_taken && c_taken)
  else $error("vadd: a unit still has work of the run before");
  assert property (@(posedge ap_clk) disable iff (!ap_rst_n)
      a_valid && b_valid |-> a_last == b_last)
  else $error("vadd: one vector ends before the other");
  assert property (@(posedge ap_clk) disable iff (!ap_rst_n) finished |-> !c_valid)
  else $error("vadd: done with a sum left");
`endif

endmodule

`default_nettype wire
