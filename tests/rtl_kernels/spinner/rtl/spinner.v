// Counts to the register `limit` (0x10) within one cycle, in a loop that has no bound of its own:
// its step is bit 1 of the limit, and where that is 0 the evaluation of the cycle does not end.
`default_nettype none

module spinner (
    input  wire        ap_clk,
    input  wire        ap_rst_n,
    input  wire [ 5:0] s_axi_control_AWADDR,
    input  wire        s_axi_control_AWVALID,
    output wire        s_axi_control_AWREADY,
    input  wire [31:0] s_axi_control_WDATA,
    input  wire [ 3:0] s_axi_control_WSTRB,
    input  wire        s_axi_control_WVALID,
    output wire        s_axi_control_WREADY,
    output wire [ 1:0] s_axi_control_BRESP,
    output reg         s_axi_control_BVALID,
    input  wire        s_axi_control_BREADY,
    input  wire [ 5:0] s_axi_control_ARADDR,
    input  wire        s_axi_control_ARVALID,
    output wire        s_axi_control_ARREADY,
    output reg  [31:0] s_axi_control_RDATA,
    output wire [ 1:0] s_axi_control_RRESP,
    output reg         s_axi_control_RVALID,
    input  wire        s_axi_control_RREADY
);
  reg ap_start, done;
  reg [31:0] limit, count, i, now;  // `now` runs on, and is read at 0x18
  wire ap_done = ap_start;
  wire ap_idle = !ap_start;
  wire ap_ready = ap_done;

  wire write_now = s_axi_control_AWVALID && s_axi_control_WVALID && !s_axi_control_BVALID;
  wire read_now = s_axi_control_ARVALID && !s_axi_control_RVALID;
  assign s_axi_control_AWREADY = write_now;
  assign s_axi_control_WREADY = write_now;
  assign s_axi_control_ARREADY = read_now;
  assign s_axi_control_BRESP = 2'b00;
  assign s_axi_control_RRESP = 2'b00;

  always @(posedge ap_clk) begin
    if (s_axi_control_BREADY) s_axi_control_BVALID <= 1'b0;
    if (s_axi_control_RREADY) s_axi_control_RVALID <= 1'b0;
    if (ap_ready) ap_start <= 1'b0;
    now <= now + 32'd1;
    if (write_now) begin
      s_axi_control_BVALID <= 1'b1;
      if (s_axi_control_AWADDR == 6'h00) ap_start <= s_axi_control_WDATA[0];
      if (s_axi_control_AWADDR == 6'h10) limit <= s_axi_control_WDATA;
    end
    if (read_now) begin
      s_axi_control_RVALID <= 1'b1;
      if (s_axi_control_ARADDR == 6'h00) begin
        s_axi_control_RDATA <= {29'd0, ap_idle, done, ap_start};
        done <= 1'b0;
      end else begin
        s_axi_control_RDATA <= s_axi_control_ARADDR == 6'h18 ? now : count;
      end
    end
    if (ap_done && ap_rst_n) begin
      done <= 1'b1;
      i = 32'd0;
      while (i < limit) begin
        i = i + {31'd0, limit[1]};
        count <= i;
      end
    end
    if (!ap_rst_n) begin
      ap_start <= 1'b0;
      done <= 1'b0;
      limit <= 32'd0;
      count <= 32'd0;
      now <= 32'd0;
      s_axi_control_BVALID <= 1'b0;
      s_axi_control_RVALID <= 1'b0;
    end
  end
endmodule

`default_nettype wire
