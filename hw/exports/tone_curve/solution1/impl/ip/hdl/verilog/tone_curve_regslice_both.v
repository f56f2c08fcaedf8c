// Two registers between a stream and the pipeline: neither side sees the other's logic.
`timescale 1 ns / 1 ps

module tone_curve_regslice_both #(
    parameter DataWidth = 32
) (
    input ap_clk,
    input ap_rst,
    input [DataWidth - 1:0] data_in,
    input vld_in,
    output ack_in,
    output [DataWidth - 1:0] data_out,
    output vld_out,
    input ack_out
);

reg [DataWidth - 1:0] first_reg;
reg [DataWidth - 1:0] second_reg;
reg first_valid;
reg second_valid;

initial begin
    #0 first_valid = 1'b0;
    #0 second_valid = 1'b0;
end

// Never ready in reset, as AXI4-Stream allows and HLS does.
assign ack_in = ~second_valid & ~ap_rst;
assign vld_out = first_valid;
assign data_out = first_reg;

always @(posedge ap_clk) begin
    if (ap_rst == 1'b1) begin
        first_valid <= 1'b0;
        second_valid <= 1'b0;
    end else begin
        if (~first_valid | ack_out) begin
            first_valid <= second_valid | (vld_in & ack_in);
            second_valid <= 1'b0;
        end else if (vld_in & ack_in) begin
            second_valid <= 1'b1;
        end
    end
end

always @(posedge ap_clk) begin
    if (~first_valid | ack_out) begin
        first_reg <= second_valid ? second_reg : data_in;
    end
    if (ack_in) begin
        second_reg <= data_in;
    end
end

endmodule
