// The registers of tone_curve, as the handoff lists them.
//
// 0x00 : AP_CTRL   bit 0 ap_start, 1 ap_done (clear on read), 2 ap_idle, 3 ap_ready (clear on read),
//                  7 auto_restart, 9 interrupt
// 0x04 : GIE       bit 0 global interrupt enable
// 0x08 : IP_IER    bit 0 done, 1 ready
// 0x0c : IP_ISR    bit 0 done, 1 ready (toggle on write)
// 0x10 : strength  bits 8..0
`timescale 1 ns / 1 ps

module tone_curve_control_s_axi #(
    parameter C_S_AXI_ADDR_WIDTH = 5,
    parameter C_S_AXI_DATA_WIDTH = 32
) (
    input ACLK,
    input ARESET,
    input ACLK_EN,
    input [C_S_AXI_ADDR_WIDTH - 1:0] AWADDR,
    input AWVALID,
    output AWREADY,
    input [C_S_AXI_DATA_WIDTH - 1:0] WDATA,
    input [C_S_AXI_DATA_WIDTH / 8 - 1:0] WSTRB,
    input WVALID,
    output WREADY,
    output [1:0] BRESP,
    output BVALID,
    input BREADY,
    input [C_S_AXI_ADDR_WIDTH - 1:0] ARADDR,
    input ARVALID,
    output ARREADY,
    output [C_S_AXI_DATA_WIDTH - 1:0] RDATA,
    output [1:0] RRESP,
    output RVALID,
    input RREADY,
    output interrupt,
    output [8:0] strength,
    output ap_start,
    input ap_done,
    input ap_ready,
    input ap_idle
);

localparam
    ADDR_AP_CTRL = 5'h00,
    ADDR_GIE = 5'h04,
    ADDR_IER = 5'h08,
    ADDR_ISR = 5'h0c,
    ADDR_STRENGTH_DATA_0 = 5'h10;

localparam WRIDLE = 2'd0, WRDATA = 2'd1, WRRESP = 2'd2, WRRESET = 2'd3;
localparam RDIDLE = 2'd0, RDDATA = 2'd1, RDRESET = 2'd2;

reg [1:0] wstate = WRRESET;
reg [1:0] wnext;
reg [C_S_AXI_ADDR_WIDTH - 1:0] waddr;
wire [C_S_AXI_DATA_WIDTH - 1:0] wmask;
wire aw_hs;
wire w_hs;
reg [1:0] rstate = RDRESET;
reg [1:0] rnext;
reg [C_S_AXI_DATA_WIDTH - 1:0] rdata;
wire ar_hs;
wire [C_S_AXI_ADDR_WIDTH - 1:0] raddr;

reg int_ap_start = 1'b0;
reg int_ap_done = 1'b0;
reg int_ap_ready = 1'b0;
reg int_auto_restart = 1'b0;
reg int_gie = 1'b0;
reg [1:0] int_ier = 2'b0;
reg [1:0] int_isr = 2'b0;
reg [8:0] int_strength = 'b0;

// ---- write: address, then data, then the answer
assign AWREADY = (wstate == WRIDLE);
assign WREADY = (wstate == WRDATA);
assign BRESP = 2'b00;
assign BVALID = (wstate == WRRESP);
assign aw_hs = AWVALID & AWREADY;
assign w_hs = WVALID & WREADY;
assign wmask = { {8{WSTRB[3]}}, {8{WSTRB[2]}}, {8{WSTRB[1]}}, {8{WSTRB[0]}} };

always @(posedge ACLK) begin
    if (ARESET)
        wstate <= WRRESET;
    else if (ACLK_EN)
        wstate <= wnext;
end

always @(*) begin
    case (wstate)
        WRIDLE:
            wnext = AWVALID ? WRDATA : WRIDLE;
        WRDATA:
            wnext = WVALID ? WRRESP : WRDATA;
        WRRESP:
            wnext = BREADY ? WRIDLE : WRRESP;
        default:
            wnext = WRIDLE;
    endcase
end

always @(posedge ACLK) begin
    if (ACLK_EN) begin
        if (aw_hs)
            waddr <= AWADDR;
    end
end

// ---- read: address, then data
assign ARREADY = (rstate == RDIDLE);
assign RDATA = rdata;
assign RRESP = 2'b00;
assign RVALID = (rstate == RDDATA);
assign ar_hs = ARVALID & ARREADY;
assign raddr = ARADDR;

always @(posedge ACLK) begin
    if (ARESET)
        rstate <= RDRESET;
    else if (ACLK_EN)
        rstate <= rnext;
end

always @(*) begin
    case (rstate)
        RDIDLE:
            rnext = ARVALID ? RDDATA : RDIDLE;
        RDDATA:
            rnext = RREADY ? RDIDLE : RDDATA;
        default:
            rnext = RDIDLE;
    endcase
end

always @(posedge ACLK) begin
    if (ACLK_EN) begin
        if (ar_hs) begin
            rdata <= 'b0;
            case (raddr)
                ADDR_AP_CTRL: begin
                    rdata[0] <= int_ap_start;
                    rdata[1] <= int_ap_done;
                    rdata[2] <= ap_idle;
                    rdata[3] <= int_ap_ready;
                    rdata[7] <= int_auto_restart;
                    rdata[9] <= interrupt;
                end
                ADDR_GIE:
                    rdata[0] <= int_gie;
                ADDR_IER:
                    rdata[1:0] <= int_ier;
                ADDR_ISR:
                    rdata[1:0] <= int_isr;
                ADDR_STRENGTH_DATA_0:
                    rdata[8:0] <= int_strength;
                default: ;
            endcase
        end
    end
end

// ---- the registers
assign interrupt = int_gie & (|int_isr);
assign ap_start = int_ap_start;
assign strength = int_strength;

always @(posedge ACLK) begin
    if (ARESET)
        int_ap_start <= 1'b0;
    else if (ACLK_EN) begin
        if (w_hs && waddr == ADDR_AP_CTRL && WSTRB[0] && WDATA[0])
            int_ap_start <= 1'b1;
        else if (ap_ready)
            int_ap_start <= int_auto_restart;
    end
end

always @(posedge ACLK) begin
    if (ARESET) begin
        int_ap_done <= 1'b0;
        int_ap_ready <= 1'b0;
    end else if (ACLK_EN) begin
        if (ap_done)
            int_ap_done <= 1'b1;
        else if (ar_hs && raddr == ADDR_AP_CTRL)
            int_ap_done <= 1'b0;
        if (ap_ready)
            int_ap_ready <= 1'b1;
        else if (ar_hs && raddr == ADDR_AP_CTRL)
            int_ap_ready <= 1'b0;
    end
end

always @(posedge ACLK) begin
    if (ARESET)
        int_auto_restart <= 1'b0;
    else if (ACLK_EN) begin
        if (w_hs && waddr == ADDR_AP_CTRL && WSTRB[0])
            int_auto_restart <= WDATA[7];
    end
end

always @(posedge ACLK) begin
    if (ARESET) begin
        int_gie <= 1'b0;
        int_ier <= 2'b0;
    end else if (ACLK_EN) begin
        if (w_hs && waddr == ADDR_GIE && WSTRB[0])
            int_gie <= WDATA[0];
        if (w_hs && waddr == ADDR_IER && WSTRB[0])
            int_ier <= WDATA[1:0];
    end
end

always @(posedge ACLK) begin
    if (ARESET)
        int_isr <= 2'b0;
    else if (ACLK_EN) begin
        if (int_ier[0] & ap_done)
            int_isr[0] <= 1'b1;
        else if (w_hs && waddr == ADDR_ISR && WSTRB[0])
            int_isr[0] <= int_isr[0] ^ WDATA[0];
        if (int_ier[1] & ap_ready)
            int_isr[1] <= 1'b1;
        else if (w_hs && waddr == ADDR_ISR && WSTRB[0])
            int_isr[1] <= int_isr[1] ^ WDATA[1];
    end
end

always @(posedge ACLK) begin
    if (ARESET)
        int_strength <= 9'b0;
    else if (ACLK_EN) begin
        if (w_hs && waddr == ADDR_STRENGTH_DATA_0)
            int_strength <= (WDATA[8:0] & wmask[8:0]) | (int_strength & ~wmask[8:0]);
    end
end

endmodule
