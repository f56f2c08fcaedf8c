// net_round: from a float32 to an int8: halves to even, the zero point, the bounds; or as it is. Three cycles.
`default_nettype none

module net_round (
    input  wire logic        clk_i,
    input  wire logic        wide_i,    // as it is
    input  wire logic [31:0] value_i,
    input  wire logic signed [8:0] zero_i,
    input  wire logic signed [7:0] low_i,
    input  wire logic signed [7:0] high_i,
    output logic [31:0]      element_o
);

  // 1: what the exponent moves out of the mantissa to the left. 2: rounded, signed. 3: cut off.
  logic negative_q, negative_q2, huge_q, huge_q2, half_q, rest_q;
  logic [9:0] floor_q;
  logic [11:0] whole_q2;
  logic [31:0] value_q, value_q2;
  wire none = value_i[30:23] < 8'd126;
  wire [3:0] by = 4'(value_i[30:23] - 8'd126);
  wire [34:0] fixed = none ? '0 : {11'b0, 1'b1, value_i[22:0]} << by;
  wire signed [12:0] placed = (negative_q2 ? -signed'({1'b0, whole_q2}) : signed'({1'b0, whole_q2})) + 13'(zero_i);

  always_ff @(posedge clk_i) begin
    negative_q <= value_i[31];
    huge_q     <= value_i[30:23] > 8'd135;  // 2^9 and more
    floor_q    <= fixed[33:24];
    half_q     <= fixed[23];
    rest_q     <= fixed[22:0] != '0;
    value_q    <= value_i;

    negative_q2 <= negative_q;
    huge_q2     <= huge_q;
    whole_q2    <= 12'(floor_q) + 12'(half_q && (floor_q[0] || rest_q));
    value_q2    <= value_q;

    if (wide_i) element_o <= value_q2;
    else if (huge_q2) element_o <= negative_q2 ? 32'(low_i) : 32'(high_i);
    else if (placed > 13'(high_i)) element_o <= 32'(high_i);
    else if (placed < 13'(low_i)) element_o <= 32'(low_i);
    else element_o <= 32'(placed);
  end

  wire unused = &{1'b0, fixed[34]};

endmodule

`default_nettype wire
