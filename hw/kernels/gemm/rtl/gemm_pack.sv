// gemm_pack: elements of c to bus words. A row starts with a new word and ends with a whole one, filled
// up with zeros.
`default_nettype none

module gemm_pack #(
    parameter int unsigned DATA_WIDTH = 64,
    parameter int unsigned LANES      = 4
) (
    input  wire logic                          clk_i,
    input  wire logic                          rst_ni,
    input  wire logic                          bytes_i,  // the lowest byte of each element, not all four
    input  wire logic                          valid_i,
    output logic                               ready_o,
    input  wire logic [32*LANES-1:0]           elements_i,
    input  wire logic [$clog2(LANES + 1) - 1:0] count_i,  // elements that c has, from the lowest on
    input  wire logic                          last_i,   // of the row
    output logic                               valid_o,
    input  wire logic                          ready_i,
    output logic [DATA_WIDTH-1:0]              word_o
);

  localparam int unsigned SPLIT = 32 * LANES / DATA_WIDTH;  // words of a group of four-byte elements
  localparam int unsigned JOIN = DATA_WIDTH / (8 * LANES);  // groups of bytes in a word
  localparam int unsigned TURNS = SPLIT > JOIN ? SPLIT : JOIN;
  localparam int unsigned TURN_BITS = TURNS > 1 ? $clog2(TURNS) : 1;
  localparam int unsigned COUNT_WIDTH = $clog2(LANES + 1);

  logic [TURN_BITS-1:0] turn_q;

  // One group, several words.
  wire [COUNT_WIDTH-1:0] last_element = count_i - 1'b1;
  wire [TURN_BITS-1:0] last_turn = TURN_BITS'(32'(last_element) * 32 / DATA_WIDTH);
  wire [DATA_WIDTH-1:0] split = elements_i[DATA_WIDTH*(SPLIT>1?32'(turn_q):0)+:DATA_WIDTH];

  // Several groups, one word.
  logic [8*LANES-1:0] group;
  logic [DATA_WIDTH-1:0] joined, joined_q;
  wire full = turn_q == TURN_BITS'(JOIN - 1) || last_i;

  always_comb begin
    for (int unsigned i = 0; i < LANES; ++i) begin
      group[8*i+:8] = COUNT_WIDTH'(i) < count_i ? elements_i[32*i+:8] : '0;
    end
    joined = turn_q == '0 ? '0 : joined_q;
    joined[8*LANES*(JOIN>1?32'(turn_q):0)+:8*LANES] = group;
  end

  assign word_o  = bytes_i ? joined : split;
  assign valid_o = valid_i && (!bytes_i || full);
  assign ready_o = bytes_i ? !full || ready_i : ready_i && turn_q == last_turn;

  always_ff @(posedge clk_i) begin
    if (valid_i) joined_q <= joined;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) turn_q <= '0;
    else if (valid_i && bytes_i && ready_o) turn_q <= full ? '0 : turn_q + 1'b1;
    else if (valid_i && !bytes_i && ready_i) turn_q <= turn_q == last_turn ? '0 : turn_q + 1'b1;
  end

`ifndef SYNTHESIS
  initial assert (SPLIT >= 1 && JOIN >= 1)
  else $fatal(1, "gemm_pack: DATA_WIDTH is %0d, expected %0d to %0d", DATA_WIDTH, 8 * LANES, 32 * LANES);
`endif

endmodule

`default_nettype wire
