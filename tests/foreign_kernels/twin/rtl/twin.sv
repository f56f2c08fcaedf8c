// The RTL of twin.cpp: a word through each of its two AXI4 managers. SCALE multiplies both.
`default_nettype none

module twin #(
    parameter C_S_AXI_CONTROL_ADDR_WIDTH = 4,  // too few: a design has to say what it has
    parameter C_M_AXI_GMEM_DATA_WIDTH    = 64,
    parameter SCALE                      = 1,
    parameter MODE                       = "PLAIN"
) (
    input  wire         ap_clk,
    input  wire         ap_rst_n,
    output logic        interrupt,
    input  wire  [ 7:0] extra,  // no argument: what the design's wires add
    input  wire         s_axi_control_AWVALID,
    output logic        s_axi_control_AWREADY,
    input  wire  [C_S_AXI_CONTROL_ADDR_WIDTH-1:0] s_axi_control_AWADDR,
    input  wire         s_axi_control_WVALID,
    output logic        s_axi_control_WREADY,
    input  wire  [31:0] s_axi_control_WDATA,
    input  wire  [ 3:0] s_axi_control_WSTRB,
    input  wire         s_axi_control_ARVALID,
    output logic        s_axi_control_ARREADY,
    input  wire  [C_S_AXI_CONTROL_ADDR_WIDTH-1:0] s_axi_control_ARADDR,
    output logic        s_axi_control_RVALID,
    input  wire         s_axi_control_RREADY,
    output logic [31:0] s_axi_control_RDATA,
    output logic [ 1:0] s_axi_control_RRESP,
    output logic        s_axi_control_BVALID,
    input  wire         s_axi_control_BREADY,
    output logic [ 1:0] s_axi_control_BRESP,
    input  wire         s_axi_control_r_AWVALID,
    output logic        s_axi_control_r_AWREADY,
    input  wire  [ 5:0] s_axi_control_r_AWADDR,
    input  wire         s_axi_control_r_WVALID,
    output logic        s_axi_control_r_WREADY,
    input  wire  [31:0] s_axi_control_r_WDATA,
    input  wire  [ 3:0] s_axi_control_r_WSTRB,
    input  wire         s_axi_control_r_ARVALID,
    output logic        s_axi_control_r_ARREADY,
    input  wire  [ 5:0] s_axi_control_r_ARADDR,
    output logic        s_axi_control_r_RVALID,
    input  wire         s_axi_control_r_RREADY,
    output logic [31:0] s_axi_control_r_RDATA,
    output logic [ 1:0] s_axi_control_r_RRESP,
    output logic        s_axi_control_r_BVALID,
    input  wire         s_axi_control_r_BREADY,
    output logic [ 1:0] s_axi_control_r_BRESP,
    output logic        m_axi_GMEM_AWVALID,
    input  wire         m_axi_GMEM_AWREADY,
    output logic [63:0] m_axi_GMEM_AWADDR,
    output logic [ 7:0] m_axi_GMEM_AWLEN,
    output logic [ 2:0] m_axi_GMEM_AWSIZE,
    output logic [ 1:0] m_axi_GMEM_AWBURST,
    output logic        m_axi_GMEM_WVALID,
    input  wire         m_axi_GMEM_WREADY,
    output logic [C_M_AXI_GMEM_DATA_WIDTH-1:0] m_axi_GMEM_WDATA,
    output logic [C_M_AXI_GMEM_DATA_WIDTH/8-1:0] m_axi_GMEM_WSTRB,
    output logic        m_axi_GMEM_WLAST,
    input  wire         m_axi_GMEM_BVALID,
    output logic        m_axi_GMEM_BREADY,
    input  wire  [ 1:0] m_axi_GMEM_BRESP,
    output logic        m_axi_gmem_AWVALID,
    input  wire         m_axi_gmem_AWREADY,
    output logic [63:0] m_axi_gmem_AWADDR,
    output logic [ 7:0] m_axi_gmem_AWLEN,
    output logic [ 2:0] m_axi_gmem_AWSIZE,
    output logic [ 1:0] m_axi_gmem_AWBURST,
    output logic        m_axi_gmem_WVALID,
    input  wire         m_axi_gmem_WREADY,
    output logic [31:0] m_axi_gmem_WDATA,
    output logic [ 3:0] m_axi_gmem_WSTRB,
    output logic        m_axi_gmem_WLAST,
    input  wire         m_axi_gmem_BVALID,
    output logic        m_axi_gmem_BREADY,
    input  wire  [ 1:0] m_axi_gmem_BRESP
);
  localparam logic [31:0] FACTOR = MODE == "TWICE" ? 2 * SCALE : SCALE;

  logic ap_start, ap_done, ap_idle, busy_q;
  logic [1:0] address_q, data_q, answer_q;  // what is left to do for each manager
  logic [ 95:0] numbers;
  logic [191:0] places;
  wire unused = &{1'b0, numbers[63:32], places[95:64], places[191:160], places[95:64],
                  m_axi_GMEM_BRESP, m_axi_gmem_BRESP};

  assign ap_idle = !busy_q;
  assign ap_done = busy_q && {address_q, data_q, answer_q} == '0;

  axil_control #(
      .ADDR_WIDTH(C_S_AXI_CONTROL_ADDR_WIDTH), .WORDS(3), .INPUTS(3'b101)
  ) i_control (
      .clk_i(ap_clk), .rst_ni(ap_rst_n),
      .awvalid_i(s_axi_control_AWVALID), .awready_o(s_axi_control_AWREADY),
      .awaddr_i(s_axi_control_AWADDR), .wvalid_i(s_axi_control_WVALID),
      .wready_o(s_axi_control_WREADY), .wdata_i(s_axi_control_WDATA),
      .wstrb_i(s_axi_control_WSTRB), .bvalid_o(s_axi_control_BVALID),
      .bready_i(s_axi_control_BREADY), .bresp_o(s_axi_control_BRESP),
      .arvalid_i(s_axi_control_ARVALID), .arready_o(s_axi_control_ARREADY),
      .araddr_i(s_axi_control_ARADDR), .rvalid_o(s_axi_control_RVALID),
      .rready_i(s_axi_control_RREADY), .rdata_o(s_axi_control_RDATA),
      .rresp_o(s_axi_control_RRESP), .regs_o(numbers), .values_i('0), .ap_start_o(ap_start),
      .ap_done_i(ap_done), .ap_idle_i(ap_idle), .ap_ready_i(ap_done), .interrupt_o(interrupt)
  );
  axil_control #(
      .ADDR_WIDTH(6), .WORDS(6), .INPUTS(6'b011011)
  ) i_control_r (
      .clk_i(ap_clk), .rst_ni(ap_rst_n),
      .awvalid_i(s_axi_control_r_AWVALID), .awready_o(s_axi_control_r_AWREADY),
      .awaddr_i(s_axi_control_r_AWADDR), .wvalid_i(s_axi_control_r_WVALID),
      .wready_o(s_axi_control_r_WREADY), .wdata_i(s_axi_control_r_WDATA),
      .wstrb_i(s_axi_control_r_WSTRB), .bvalid_o(s_axi_control_r_BVALID),
      .bready_i(s_axi_control_r_BREADY), .bresp_o(s_axi_control_r_BRESP),
      .arvalid_i(s_axi_control_r_ARVALID), .arready_o(s_axi_control_r_ARREADY),
      .araddr_i(s_axi_control_r_ARADDR), .rvalid_o(s_axi_control_r_RVALID),
      .rready_i(s_axi_control_r_RREADY), .rdata_o(s_axi_control_r_RDATA),
      .rresp_o(s_axi_control_r_RRESP), .regs_o(places), .values_i('0), .ap_start_o(),
      .ap_done_i(1'b0), .ap_idle_i(1'b0), .ap_ready_i(1'b0), .interrupt_o()
  );

  assign {m_axi_gmem_AWVALID, m_axi_GMEM_AWVALID} = address_q;
  assign {m_axi_gmem_WVALID, m_axi_GMEM_WVALID}   = data_q;
  assign {m_axi_gmem_BREADY, m_axi_GMEM_BREADY}   = answer_q;
  assign m_axi_GMEM_AWADDR = places[63:0];
  assign m_axi_gmem_AWADDR = places[159:96];
  assign m_axi_GMEM_WDATA = FACTOR * numbers[31:0] + 32'(extra);
  assign m_axi_gmem_WDATA = FACTOR * numbers[95:64];
  assign {m_axi_GMEM_AWLEN, m_axi_gmem_AWLEN} = '0;
  assign {m_axi_GMEM_AWSIZE, m_axi_gmem_AWSIZE} = {3'd2, 3'd2};
  assign {m_axi_GMEM_AWBURST, m_axi_gmem_AWBURST} = {2'd1, 2'd1};
  assign {m_axi_GMEM_WSTRB, m_axi_gmem_WSTRB} = '1;
  assign {m_axi_GMEM_WLAST, m_axi_gmem_WLAST} = '1;

  always_ff @(posedge ap_clk) begin
    address_q <= address_q & ~{m_axi_gmem_AWREADY, m_axi_GMEM_AWREADY};
    data_q    <= data_q & ~{m_axi_gmem_WREADY, m_axi_GMEM_WREADY};
    answer_q  <= answer_q & ~{m_axi_gmem_BVALID, m_axi_GMEM_BVALID};
    if (ap_done) busy_q <= 1'b0;
    if (ap_start && !busy_q) begin
      busy_q <= 1'b1;
      {address_q, data_q, answer_q} <= '1;
    end
    if (!ap_rst_n) {busy_q, address_q, data_q, answer_q} <= '0;
  end
endmodule

`default_nettype wire
