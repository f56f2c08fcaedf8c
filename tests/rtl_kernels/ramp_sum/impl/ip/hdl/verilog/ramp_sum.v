// Written by hand in the shape of an export. Operands are shown to an operator for one cycle and
// its result is taken in one cycle, so that a core with any other latency gives another sum.
`timescale 1 ns / 1 ps

module ramp_sum (
    input ap_clk, input ap_rst_n,
    input s_axi_control_AWVALID, output s_axi_control_AWREADY, input [5:0] s_axi_control_AWADDR,
    input s_axi_control_WVALID, output s_axi_control_WREADY, input [31:0] s_axi_control_WDATA,
    input [3:0] s_axi_control_WSTRB,
    input s_axi_control_ARVALID, output s_axi_control_ARREADY, input [5:0] s_axi_control_ARADDR,
    output s_axi_control_RVALID, input s_axi_control_RREADY, output [31:0] s_axi_control_RDATA,
    output [1:0] s_axi_control_RRESP,
    output s_axi_control_BVALID, input s_axi_control_BREADY, output [1:0] s_axi_control_BRESP,
    output interrupt
);

wire ap_start, ap_done, ap_idle, ap_ready;
wire [31:0] a, least, n, ap_return;
wire [31:0] index, product, total;
reg [31:0] total_reg;
wire more;
reg [4:0] step;
reg [31:0] i, sum;

assign ap_idle = (step == 0) & ~ap_start;
assign ap_done = (step == 18);
assign ap_ready = ap_done;
assign ap_return = more ? sum : least;

always @(posedge ap_clk) begin
    if (~ap_rst_n) begin
        step <= 0;
    end else begin
        case (step)
            0: begin
                i <= 0;
                sum <= 0;
                if (ap_start) step <= ($signed(n) > 0) ? 1 : 16;
            end
            14: begin
                sum <= total_reg;
                i <= i + 1;
                step <= ($signed(i + 1) < $signed(n)) ? 1 : 16;
            end
            18: step <= 0;
            default: step <= step + 1;
        endcase
    end
end

ramp_sum_sitofp_32s_32_6_no_dsp_1 sitofp_U(
    .clk(ap_clk), .ce(1'b1), .din0((step == 1) ? i : 32'dx), .dout(index));
ramp_sum_fmul_32ns_32ns_32_4_max_dsp_1 fmul_U(
    .clk(ap_clk), .ce(1'b1), .din0((step == 6) ? index : 32'dx), .din1(a), .dout(product));
ramp_sum_fadd_32ns_32ns_32_5_full_dsp_1 fadd_U(
    .clk(ap_clk), .ce(1'b1), .din0(sum), .din1((step == 9) ? product : 32'dx), .dout(total));
ramp_sum_fcmp_32ns_32ns_1_2_no_dsp_1 fcmp_U(
    .clk(ap_clk), .ce(1'b1), .din0(sum), .din1(least), .opcode(5'b00010), .dout(more));

always @(posedge ap_clk) if (step == 13) total_reg <= total;

ramp_sum_control_s_axi control_s_axi_U(
    .ACLK(ap_clk), .ARESET(~ap_rst_n),
    .AWVALID(s_axi_control_AWVALID), .AWREADY(s_axi_control_AWREADY), .AWADDR(s_axi_control_AWADDR),
    .WVALID(s_axi_control_WVALID), .WREADY(s_axi_control_WREADY), .WDATA(s_axi_control_WDATA),
    .ARVALID(s_axi_control_ARVALID), .ARREADY(s_axi_control_ARREADY), .ARADDR(s_axi_control_ARADDR),
    .RVALID(s_axi_control_RVALID), .RREADY(s_axi_control_RREADY), .RDATA(s_axi_control_RDATA),
    .RRESP(s_axi_control_RRESP), .BVALID(s_axi_control_BVALID), .BREADY(s_axi_control_BREADY),
    .BRESP(s_axi_control_BRESP), .interrupt(interrupt), .a(a), .least(least), .n(n),
    .ap_return(ap_return), .ap_start(ap_start), .ap_done(ap_done), .ap_ready(ap_ready),
    .ap_idle(ap_idle));

endmodule
