// Counts the beats of one start: which is the last one, and that all have been taken.
`timescale 1 ns / 1 ps

module tone_curve_flow_control_loop_pipe #(
    parameter TripCount = 11'd1024
) (
    input ap_clk,
    input ap_rst,
    input ap_busy,
    input ap_beat,
    output ap_loop_exit,
    output ap_loop_all
);

reg [10:0] i_fu;

initial begin
    #0 i_fu = 11'd0;
end

always @(posedge ap_clk) begin
    if (ap_rst == 1'b1 || ~ap_busy) begin
        i_fu <= 11'd0;
    end else if (ap_beat) begin
        i_fu <= i_fu + 11'd1;
    end
end

// The beat that is taken now is the last one; all have been taken.
assign ap_loop_exit = (i_fu == TripCount - 11'd1);
assign ap_loop_all = (i_fu == TripCount);

endmodule
