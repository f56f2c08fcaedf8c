// scale_stream: y = gain * x + offset on every float32 of one AXI4-Stream packet. The RTL twin of
// ../scale_stream.cpp.
//
//   samples -> f32_mul by gain -> f32_add of offset -> skid -> scaled
//
// TKEEP, TSTRB and TLAST travel with their sample as its tag. A run ends when the beat with TLAST
// has left; until the next start nothing is taken from samples.
`default_nettype none

module scale_stream (
    input  wire logic        ap_clk,
    input  wire logic        ap_rst_n,
    /* verilator lint_off SYMRSVDWORD */  // the name Vitis HLS gives it is a macro in some C headers
    output logic             interrupt,
    /* verilator lint_on SYMRSVDWORD */
    // registers: 0x10 beats (read only), 0x18 gain, 0x20 offset
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
    // streams
    input  wire logic        samples_TVALID,
    output logic             samples_TREADY,
    input  wire logic [31:0] samples_TDATA,
    input  wire logic [3:0]  samples_TKEEP,
    input  wire logic [3:0]  samples_TSTRB,
    input  wire logic        samples_TLAST,
    output logic             scaled_TVALID,
    input  wire logic        scaled_TREADY,
    output logic [31:0]      scaled_TDATA,
    output logic [3:0]       scaled_TKEEP,
    output logic [3:0]       scaled_TSTRB,
    output logic             scaled_TLAST
);

  localparam int unsigned WORDS = 5;  // registers from 0x10 on
  localparam int unsigned BEATS = 0, GAIN = 2, OFFSET = 4;

  logic ap_start, ap_done, ap_idle, ap_ready;
  logic [32*WORDS-1:0] regs;
  logic [31:0] beats_q, gain_q, offset_q;

  axil_control #(
      .ADDR_WIDTH(6),
      .WORDS(WORDS),
      .INPUTS(WORDS'(1 << GAIN | 1 << OFFSET)),
      .OUTPUTS(WORDS'(1 << BEATS))
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
      .values_i((32 * WORDS)'(beats_q)),
      .ap_start_o(ap_start),
      .ap_done_i(ap_done),
      .ap_idle_i(ap_idle),
      .ap_ready_i(ap_ready),
      .interrupt_o(interrupt)
  );

  // The run: IDLE until a start, TAKE beats until TLAST came in, DRAIN until it went out.
  typedef enum logic [1:0] {
    IDLE,
    TAKE,
    DRAIN
  } state_t;
  state_t state_q;
  logic mul_ready;
  wire taken = samples_TVALID && samples_TREADY;
  wire last_left = scaled_TVALID && scaled_TREADY && scaled_TLAST;

  assign samples_TREADY = state_q == TAKE && mul_ready;
  assign ap_done  = state_q == DRAIN && last_left;
  assign ap_ready = ap_done;
  assign ap_idle  = state_q == IDLE && !ap_start;

  always_ff @(posedge ap_clk) begin
    if (!ap_rst_n) begin
      state_q <= IDLE;
    end else begin
      case (state_q)
        IDLE:    if (ap_start) state_q <= TAKE;
        TAKE:    if (taken && samples_TLAST) state_q <= DRAIN;
        default: if (ap_done) state_q <= IDLE;
      endcase
    end
  end

  // The arguments count as they are at the start.
  always_ff @(posedge ap_clk) begin
    if (state_q == IDLE) begin
      beats_q  <= '0;
      gain_q   <= regs[32*GAIN+:32];
      offset_q <= regs[32*OFFSET+:32];
    end else if (taken) begin
      beats_q <= beats_q + 1'b1;
    end
  end

  logic product_valid, add_ready, sum_valid, sum_ready;
  logic [31:0] product, sum;
  logic [8:0] product_side, sum_side;  // TLAST, TSTRB, TKEEP

  f32_mul #(
      .TAG_WIDTH(9)
  ) mul (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .valid_i(taken),
      .ready_o(mul_ready),
      .a_i(gain_q),
      .b_i(samples_TDATA),
      .tag_i({samples_TLAST, samples_TSTRB, samples_TKEEP}),
      .valid_o(product_valid),
      .ready_i(add_ready),
      .product_o(product),
      .tag_o(product_side)
  );

  f32_add #(
      .TAG_WIDTH(9)
  ) add (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .valid_i(product_valid),
      .ready_o(add_ready),
      .a_i(product),
      .b_i(offset_q),
      .tag_i(product_side),
      .valid_o(sum_valid),
      .ready_i(sum_ready),
      .sum_o(sum),
      .tag_o(sum_side)
  );

  skid #(
      .WIDTH(41)
  ) out (
      .clk_i(ap_clk),
      .rst_ni(ap_rst_n),
      .valid_i(sum_valid),
      .ready_o(sum_ready),
      .data_i({sum_side, sum}),
      .valid_o(scaled_TVALID),
      .ready_i(scaled_TREADY),
      .data_o({scaled_TLAST, scaled_TSTRB, scaled_TKEEP, scaled_TDATA})
  );

  // Words of the register map that are holes or the result.
  wire unused = &{1'b0, regs};

`ifndef SYNTHESIS
  assert property (@(posedge ap_clk) disable iff (!ap_rst_n) last_left |-> state_q == DRAIN)
  else $error("scale_stream: the end of a packet left before it came in");
  assert property (@(posedge ap_clk) disable iff (!ap_rst_n) state_q == IDLE |-> !scaled_TVALID)
  else $error("scale_stream: a beat was left from the run before");
`endif

endmodule

`default_nettype wire
