// net_lane: from a sum to an element of the result. LATENCY cycles; what comes goes on by itself.
//
//   float32(left + left_bias) * left_factor [ + float32(right + right_bias) * right_factor ]
//
// and from there, unless float32 is wanted: halves to even, the zero point, the bounds.
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
    output logic [31:0]      element_o
);

  localparam int unsigned LATENCY = 15;  // 3 to a float, 4 to the product, 5 to the sum, 3 to an int8

  logic [31:0] left, right, sum;
  logic [1:0] unused_ready;
  logic [5:0] unused_valid;

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
      .ready_o(unused_ready[0]),
      .a_i(left),
      .b_i(both_i ? right : '0),
      .tag_i(1'b0),
      .valid_o(unused_valid[0]),
      .ready_i(1'b1),
      .sum_o(sum),
      .tag_o(unused_valid[1])
  );

  // Alone, a product stays as it is: -0 plus 0 would be 0.
  logic [31:0] waits_q[5];
  always_ff @(posedge clk_i) begin
    waits_q[0] <= left;
    for (int i = 1; i < 5; ++i) waits_q[i] <= waits_q[i-1];
  end

  wire [31:0] value = both_i ? sum : waits_q[4];

  // 1: what the exponent moves out of the mantissa to the left. 2: rounded, signed. 3: cut off.
  logic negative_q, negative_q2, huge_q, huge_q2, half_q, rest_q;
  logic [9:0] floor_q;
  logic [11:0] whole_q2;
  logic [31:0] value_q, value_q2;
  wire none = value[30:23] < 8'd126;
  wire [3:0] by = 4'(value[30:23] - 8'd126);
  wire [34:0] fixed = none ? '0 : {11'b0, 1'b1, value[22:0]} << by;
  wire signed [12:0] placed = (negative_q2 ? -signed'({1'b0, whole_q2}) : signed'({1'b0, whole_q2})) + 13'(zero_i);

  always_ff @(posedge clk_i) begin
    negative_q <= value[31];
    huge_q     <= value[30:23] > 8'd135;  // 2^9 and more
    floor_q    <= fixed[33:24];
    half_q     <= fixed[23];
    rest_q     <= fixed[22:0] != '0;
    value_q    <= value;

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

  assign {unused_ready[1], unused_valid[5:2]} = '0;
  wire unused = &{1'b0, unused_ready, unused_valid, fixed[34], 1'(LATENCY)};

endmodule

`default_nettype wire
