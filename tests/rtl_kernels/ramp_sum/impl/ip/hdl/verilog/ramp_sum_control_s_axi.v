// 0x00 AP_CTRL, 0x04 GIE, 0x08 IER, 0x0c ISR, 0x10 ap_return, 0x18 a, 0x20 least, 0x28 n
`timescale 1 ns / 1 ps

module ramp_sum_control_s_axi (
    input ACLK, input ARESET,
    input AWVALID, output AWREADY, input [5:0] AWADDR,
    input WVALID, output WREADY, input [31:0] WDATA,
    input ARVALID, output ARREADY, input [5:0] ARADDR,
    output reg RVALID, input RREADY, output reg [31:0] RDATA, output [1:0] RRESP,
    output reg BVALID, input BREADY, output [1:0] BRESP,
    output interrupt,
    output reg [31:0] a, output reg [31:0] least, output reg [31:0] n, input [31:0] ap_return,
    output reg ap_start, input ap_done, input ap_ready, input ap_idle
);

reg int_ap_done, int_gie;
reg [1:0] int_ier, int_isr;
reg [31:0] int_ap_return;
wire write = AWVALID & WVALID & ~BVALID;
wire read = ARVALID & ~RVALID;

assign AWREADY = write;
assign WREADY = write;
assign ARREADY = read;
assign RRESP = 0;
assign BRESP = 0;
assign interrupt = int_gie & (|int_isr);

always @(posedge ACLK) begin
    if (ARESET) begin
        {RVALID, BVALID, ap_start, int_ap_done, int_gie, int_ier, int_isr} <= 0;
        {a, least, n, int_ap_return, RDATA} <= 0;
    end else begin
        if (BREADY) BVALID <= 0;
        if (RREADY) RVALID <= 0;
        if (ap_ready) ap_start <= 0;
        if (write) begin
            BVALID <= 1;
            case (AWADDR)
                6'h00: ap_start <= ap_start | WDATA[0];
                6'h04: int_gie <= WDATA[0];
                6'h08: int_ier <= WDATA[1:0];
                6'h0c: int_isr <= int_isr ^ WDATA[1:0];
                6'h18: a <= WDATA;
                6'h20: least <= WDATA;
                6'h28: n <= WDATA;
                default: ;
            endcase
        end
        if (read) begin
            RVALID <= 1;
            case (ARADDR)
                6'h00: begin
                    RDATA <= {28'b0, 1'b0, ap_idle, int_ap_done, ap_start};
                    int_ap_done <= 0;
                end
                6'h04: RDATA <= int_gie;
                6'h08: RDATA <= int_ier;
                6'h0c: RDATA <= int_isr;
                6'h10: RDATA <= int_ap_return;
                6'h18: RDATA <= a;
                6'h20: RDATA <= least;
                6'h28: RDATA <= n;
                default: RDATA <= 0;
            endcase
        end
        if (ap_done) begin
            int_ap_done <= 1;
            int_ap_return <= ap_return;
            int_isr <= int_isr | (int_ier & 2'b11);
        end
    end
end

endmodule
