// The curve: 256 values in distributed memory, a value a cycle.
`timescale 1 ns / 1 ps

module tone_curve_CURVE_ROM_AUTO_1R (address0, ce0, q0, reset, clk);

parameter DataWidth = 8;
parameter AddressWidth = 8;
parameter AddressRange = 256;

input [AddressWidth - 1:0] address0;
input ce0;
output reg [DataWidth - 1:0] q0;
input reset;
input clk;

reg [DataWidth - 1:0] rom0 [0:AddressRange - 1];

initial begin
    $readmemh("./tone_curve_CURVE_ROM_AUTO_1R.dat", rom0);
end

always @(posedge clk) begin
    if (ce0) begin
        q0 <= rom0[address0];
    end
end

endmodule
