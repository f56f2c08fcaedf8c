// The modules that HLS puts around its cores: registers at the operands, a hold at the result.
`timescale 1 ns / 1 ps

module ramp_sum_sitofp_32s_32_6_no_dsp_1 (
    input clk, input ce, input [31:0] din0, output [31:0] dout);
reg [31:0] din0_buf1, dout_r;
reg ce_r;
wire [31:0] dout_i;
ramp_sum_ap_sitofp_4_no_dsp_32 ramp_sum_ap_sitofp_4_no_dsp_32_u (
    .aclk(clk), .aclken(ce_r), .s_axis_a_tvalid(1'b1), .s_axis_a_tdata(din0_buf1),
    .m_axis_result_tvalid(), .m_axis_result_tdata(dout_i));
always @(posedge clk) if (ce) din0_buf1 <= din0;
always @(posedge clk) ce_r <= ce;
always @(posedge clk) if (ce_r) dout_r <= dout_i;
assign dout = ce_r ? dout_i : dout_r;
endmodule

module ramp_sum_fmul_32ns_32ns_32_4_max_dsp_1 (
    input clk, input ce, input [31:0] din0, input [31:0] din1, output [31:0] dout);
reg [31:0] din0_buf1, din1_buf1, dout_r;
reg ce_r;
wire [31:0] dout_i;
ramp_sum_ap_fmul_2_max_dsp_32 ramp_sum_ap_fmul_2_max_dsp_32_u (
    .aclk(clk), .aclken(ce_r), .s_axis_a_tvalid(1'b1), .s_axis_a_tdata(din0_buf1),
    .s_axis_b_tvalid(1'b1), .s_axis_b_tdata(din1_buf1),
    .m_axis_result_tvalid(), .m_axis_result_tdata(dout_i));
always @(posedge clk) if (ce) {din0_buf1, din1_buf1} <= {din0, din1};
always @(posedge clk) ce_r <= ce;
always @(posedge clk) if (ce_r) dout_r <= dout_i;
assign dout = ce_r ? dout_i : dout_r;
endmodule

module ramp_sum_fadd_32ns_32ns_32_5_full_dsp_1 (
    input clk, input ce, input [31:0] din0, input [31:0] din1, output [31:0] dout);
reg [31:0] din0_buf1, din1_buf1, dout_r;
reg ce_r;
wire [31:0] dout_i;
ramp_sum_fadd_32ns_32ns_32_5_full_dsp_1_ip ramp_sum_fadd_32ns_32ns_32_5_full_dsp_1_ip_u (
    .aclk(clk), .aclken(ce_r), .s_axis_a_tvalid(1'b1), .s_axis_a_tdata(din0_buf1),
    .s_axis_b_tvalid(1'b1), .s_axis_b_tdata(din1_buf1),
    .m_axis_result_tvalid(), .m_axis_result_tdata(dout_i));
always @(posedge clk) if (ce) {din0_buf1, din1_buf1} <= {din0, din1};
always @(posedge clk) ce_r <= ce;
always @(posedge clk) if (ce_r) dout_r <= dout_i;
assign dout = ce_r ? dout_i : dout_r;
endmodule

module ramp_sum_fcmp_32ns_32ns_1_2_no_dsp_1 (
    input clk, input ce, input [31:0] din0, input [31:0] din1, input [4:0] opcode,
    output [0:0] dout);
reg [31:0] din0_buf1, din1_buf1;
reg [7:0] op_tdata;
wire [7:0] r_tdata;
ramp_sum_fcmp_32ns_32ns_1_2_no_dsp_1_ip ramp_sum_fcmp_32ns_32ns_1_2_no_dsp_1_ip_u (
    .s_axis_a_tvalid(1'b1), .s_axis_a_tdata(din0_buf1),
    .s_axis_b_tvalid(1'b1), .s_axis_b_tdata(din1_buf1),
    .s_axis_operation_tvalid(1'b1), .s_axis_operation_tdata(op_tdata),
    .m_axis_result_tvalid(), .m_axis_result_tdata(r_tdata));
always @(*) op_tdata = (opcode == 5'b00010) ? 8'b00100100 : 8'b00010100;
always @(posedge clk) if (ce) {din0_buf1, din1_buf1} <= {din0, din1};
assign dout = r_tdata[0];
endmodule
