// net_lane: from sums to elements of the result; what comes goes on by itself.
//
//   both_i:    float32(left + left_bias) * left_factor + float32(right + right_bias) * right_factor, one element
//   otherwise: float32(left + left_bias) * left_factor and the same of right, two elements
//
// and from there, unless float32 is wanted: halves to even, the zero point, the bounds. BOTH or ALONE cycles.
`default_nettype none

module net_lane (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic        both_i,    // add the right side
    input  wire logic        wide_i,    // float32
    input  wire logic [31:0] left_i,
    input  wire logic [31:0] left_bias_i,
    input  wire logic [31:0] left_factor_i,
    input  wire logic [31:0] right_i,
    input  wire logic [31:0] right_bias_i,
    input  wire logic [31:0] right_factor_i,
    input  wire logic signed [8:0] zero_i,
    input  wire logic signed [7:0] low_i,
    input  wire logic signed [7:0] high_i,
    output logic [31:0]      element_o,
    output logic [7:0]       second_o   // int8
);

  localparam int unsigned ALONE = 10;          // 3 to a float, 4 to the product, 3 to an int8
  localparam int unsigned BOTH  = ALONE + 5;   // 5 to the sum

  logic [31:0] left, right, sum, second;
  logic [2:0] unused_flags;

  net_scale scale_left (
      .clk_i,
      .rst_ni,
      .value_i(left_i),
      .bias_i(left_bias_i),
      .factor_i(left_factor_i),
      .product_o(left)
  );

  net_scale scale_right (
      .clk_i,
      .rst_ni,
      .value_i(right_i),
      .bias_i(right_bias_i),
      .factor_i(right_factor_i),
      .product_o(right)
  );

  f32_add add (
      .clk_i,
      .rst_ni,
      .valid_i(1'b1),
      .ready_o(unused_flags[0]),
      .a_i(left),
      .b_i(right),
      .tag_i(1'b0),
      .valid_o(unused_flags[1]),
      .ready_i(1'b1),
      .sum_o(sum),
      .tag_o(unused_flags[2])
  );

  net_round round (
      .clk_i,
      .wide_i,
      .value_i(both_i ? sum : left),
      .zero_i,
      .low_i,
      .high_i,
      .element_o
  );

  net_round round_second (
      .clk_i,
      .wide_i(1'b0),
      .value_i(right),
      .zero_i,
      .low_i,
      .high_i,
      .element_o(second)
  );

  assign second_o = second[7:0];

  wire unused = &{1'b0, unused_flags, second, 1'(BOTH)};

endmodule

`default_nettype wire
