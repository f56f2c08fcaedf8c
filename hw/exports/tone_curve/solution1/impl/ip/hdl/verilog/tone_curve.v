// tone_curve: the top, written by hand in the form in which Vitis HLS exports one: ap_* handshake,
// a pipeline with II = 1, register slices at the streams, a ROM in a module of its own.
`timescale 1 ns / 1 ps

module tone_curve (
        ap_clk,
        ap_rst_n,
        pixels_TDATA,
        pixels_TVALID,
        pixels_TREADY,
        pixels_TKEEP,
        pixels_TSTRB,
        pixels_TLAST,
        toned_TDATA,
        toned_TVALID,
        toned_TREADY,
        toned_TKEEP,
        toned_TSTRB,
        toned_TLAST,
        s_axi_control_AWVALID,
        s_axi_control_AWREADY,
        s_axi_control_AWADDR,
        s_axi_control_WVALID,
        s_axi_control_WREADY,
        s_axi_control_WDATA,
        s_axi_control_WSTRB,
        s_axi_control_ARVALID,
        s_axi_control_ARREADY,
        s_axi_control_ARADDR,
        s_axi_control_RVALID,
        s_axi_control_RREADY,
        s_axi_control_RDATA,
        s_axi_control_RRESP,
        s_axi_control_BVALID,
        s_axi_control_BREADY,
        s_axi_control_BRESP,
        interrupt
);

parameter C_S_AXI_CONTROL_DATA_WIDTH = 32;
parameter C_S_AXI_CONTROL_ADDR_WIDTH = 5;
parameter C_S_AXI_DATA_WIDTH = 32;
parameter C_S_AXI_CONTROL_WSTRB_WIDTH = (32 / 8);

localparam BEATS = 11'd1024;

input ap_clk;
input ap_rst_n;
input [31:0] pixels_TDATA;
input pixels_TVALID;
output pixels_TREADY;
input [3:0] pixels_TKEEP;
input [3:0] pixels_TSTRB;
input [0:0] pixels_TLAST;
output [31:0] toned_TDATA;
output toned_TVALID;
input toned_TREADY;
output [3:0] toned_TKEEP;
output [3:0] toned_TSTRB;
output [0:0] toned_TLAST;
input s_axi_control_AWVALID;
output s_axi_control_AWREADY;
input [C_S_AXI_CONTROL_ADDR_WIDTH - 1:0] s_axi_control_AWADDR;
input s_axi_control_WVALID;
output s_axi_control_WREADY;
input [C_S_AXI_CONTROL_DATA_WIDTH - 1:0] s_axi_control_WDATA;
input [C_S_AXI_CONTROL_WSTRB_WIDTH - 1:0] s_axi_control_WSTRB;
input s_axi_control_ARVALID;
output s_axi_control_ARREADY;
input [C_S_AXI_CONTROL_ADDR_WIDTH - 1:0] s_axi_control_ARADDR;
output s_axi_control_RVALID;
input s_axi_control_RREADY;
output [C_S_AXI_CONTROL_DATA_WIDTH - 1:0] s_axi_control_RDATA;
output [1:0] s_axi_control_RRESP;
output s_axi_control_BVALID;
input s_axi_control_BREADY;
output [1:0] s_axi_control_BRESP;
output interrupt;

reg ap_rst_n_inv;
wire ap_start;
wire ap_done;
wire ap_idle;
wire ap_ready;
wire [8:0] strength;

// The streams behind their register slices.
wire [40:0] pixels_int;
wire pixels_int_valid;
wire pixels_int_ready;
wire [40:0] toned_int;
wire toned_int_valid;
wire toned_int_ready;

// The loop: which beats have been taken, and which stages of the pipeline hold one.
reg ap_busy;
reg [8:0] strength_reg;
wire ap_loop_exit;
wire ap_loop_all;
wire ap_ce;
reg ap_enable_reg_pp0_iter1;
reg ap_enable_reg_pp0_iter2;
reg ap_last_iter1;
reg ap_last_iter2;
reg [40:0] beat_iter1;
reg [40:0] beat_iter2;

initial begin
    #0 ap_busy = 1'b0;
    #0 ap_enable_reg_pp0_iter1 = 1'b0;
    #0 ap_enable_reg_pp0_iter2 = 1'b0;
end

always @(*) begin
    ap_rst_n_inv = ~ap_rst_n;
end

tone_curve_control_s_axi #(
    .C_S_AXI_ADDR_WIDTH(C_S_AXI_CONTROL_ADDR_WIDTH),
    .C_S_AXI_DATA_WIDTH(C_S_AXI_CONTROL_DATA_WIDTH))
control_s_axi_U(
    .AWVALID(s_axi_control_AWVALID),
    .AWREADY(s_axi_control_AWREADY),
    .AWADDR(s_axi_control_AWADDR),
    .WVALID(s_axi_control_WVALID),
    .WREADY(s_axi_control_WREADY),
    .WDATA(s_axi_control_WDATA),
    .WSTRB(s_axi_control_WSTRB),
    .ARVALID(s_axi_control_ARVALID),
    .ARREADY(s_axi_control_ARREADY),
    .ARADDR(s_axi_control_ARADDR),
    .RVALID(s_axi_control_RVALID),
    .RREADY(s_axi_control_RREADY),
    .RDATA(s_axi_control_RDATA),
    .RRESP(s_axi_control_RRESP),
    .BVALID(s_axi_control_BVALID),
    .BREADY(s_axi_control_BREADY),
    .BRESP(s_axi_control_BRESP),
    .ACLK(ap_clk),
    .ARESET(ap_rst_n_inv),
    .ACLK_EN(1'b1),
    .strength(strength),
    .ap_start(ap_start),
    .ap_done(ap_done),
    .ap_ready(ap_ready),
    .ap_idle(ap_idle),
    .interrupt(interrupt)
);

tone_curve_regslice_both #(.DataWidth(41))
regslice_both_pixels_U(
    .ap_clk(ap_clk),
    .ap_rst(ap_rst_n_inv),
    .data_in({pixels_TLAST, pixels_TSTRB, pixels_TKEEP, pixels_TDATA}),
    .vld_in(pixels_TVALID),
    .ack_in(pixels_TREADY),
    .data_out(pixels_int),
    .vld_out(pixels_int_valid),
    .ack_out(pixels_int_ready)
);

tone_curve_regslice_both #(.DataWidth(41))
regslice_both_toned_U(
    .ap_clk(ap_clk),
    .ap_rst(ap_rst_n_inv),
    .data_in(toned_int),
    .vld_in(toned_int_valid),
    .ack_in(toned_int_ready),
    .data_out({toned_TLAST, toned_TSTRB, toned_TKEEP, toned_TDATA}),
    .vld_out(toned_TVALID),
    .ack_out(toned_TREADY)
);

tone_curve_flow_control_loop_pipe #(.TripCount(BEATS))
flow_control_loop_pipe_U(
    .ap_clk(ap_clk),
    .ap_rst(ap_rst_n_inv),
    .ap_busy(ap_busy),
    .ap_beat(pixels_int_ready & pixels_int_valid),
    .ap_loop_exit(ap_loop_exit),
    .ap_loop_all(ap_loop_all)
);

// A stage moves when the one behind it does; the last one, when the register slice takes its beat.
assign ap_ce = toned_int_ready | ~ap_enable_reg_pp0_iter2;
assign pixels_int_ready = ap_busy & ap_ce & ~ap_loop_all;

always @(posedge ap_clk) begin
    if (ap_rst_n_inv == 1'b1) begin
        ap_busy <= 1'b0;
        ap_enable_reg_pp0_iter1 <= 1'b0;
        ap_enable_reg_pp0_iter2 <= 1'b0;
    end else begin
        if (~ap_busy & ap_start) begin
            ap_busy <= 1'b1;
        end else if (ap_done) begin
            ap_busy <= 1'b0;
        end
        if (ap_ce) begin
            ap_enable_reg_pp0_iter1 <= pixels_int_ready & pixels_int_valid;
            ap_enable_reg_pp0_iter2 <= ap_enable_reg_pp0_iter1;
        end
    end
end

always @(posedge ap_clk) begin
    if (~ap_busy & ap_start) begin
        strength_reg <= strength;
    end
    if (ap_ce) begin
        beat_iter1 <= pixels_int;
        beat_iter2 <= beat_iter1;
        ap_last_iter1 <= ap_loop_exit;
        ap_last_iter2 <= ap_last_iter1;
    end
end

genvar lane;
generate
    for (lane = 0; lane < 4; lane = lane + 1) begin : lanes
        wire [7:0] CURVE_q0;
        wire signed [17:0] mul_ln26_p2;
        reg signed [17:0] mul_ln26_reg;
        wire signed [8:0] sub_ln26_fu;
        wire [17:0] more_fu;

        tone_curve_CURVE_ROM_AUTO_1R #(
            .DataWidth(8),
            .AddressRange(256),
            .AddressWidth(8))
        CURVE_U(
            .clk(ap_clk),
            .reset(ap_rst_n_inv),
            .address0(pixels_int[8*lane +: 8]),
            .ce0(ap_ce),
            .q0(CURVE_q0)
        );

        assign sub_ln26_fu = $signed({1'b0, CURVE_q0}) - $signed({1'b0, beat_iter1[8*lane +: 8]});

        tone_curve_mul_9s_9ns_18_1_1 #(
            .din0_WIDTH(9),
            .din1_WIDTH(9),
            .dout_WIDTH(18))
        mul_9s_9ns_18_1_1_U(
            .din0(sub_ln26_fu),
            .din1(strength_reg),
            .dout(mul_ln26_p2)
        );

        always @(posedge ap_clk) begin
            if (ap_ce) begin
                mul_ln26_reg <= mul_ln26_p2;
            end
        end

        assign more_fu = $signed(mul_ln26_reg) >>> 8;
        assign toned_int[8*lane +: 8] = beat_iter2[8*lane +: 8] + more_fu[7:0];
    end
endgenerate

assign toned_int[40:32] = beat_iter2[40:32];
assign toned_int_valid = ap_enable_reg_pp0_iter2;
assign ap_done = ap_enable_reg_pp0_iter2 & ap_last_iter2 & toned_int_ready;
assign ap_ready = ap_done;
assign ap_idle = ~ap_busy & ~ap_start;

endmodule
