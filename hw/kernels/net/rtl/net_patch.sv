// net_patch: a copy of the activations on chip for one pixel of the tile: words in, a byte out two cycles
// after its address.
`default_nettype none

module net_patch #(
    parameter int unsigned WORDS = 1024
) (
    input  wire logic                     clk_i,
    input  wire logic                     write_i,
    input  wire logic [$clog2(WORDS)-1:0] word_i,
    input  wire logic [63:0]              data_i,
    input  wire logic [$clog2(WORDS)+2:0] byte_i,
    output logic [7:0]                    byte_o
);

  logic [63:0] words[WORDS];
  logic [63:0] word_q;
  logic [2:0] lane_q;

  always_ff @(posedge clk_i) begin
    if (write_i) words[word_i] <= data_i;
    word_q <= words[byte_i[$clog2(WORDS)+2:3]];
    lane_q <= byte_i[2:0];
    byte_o <= word_q[{lane_q, 3'b0}+:8];
  end

endmodule

`default_nettype wire
