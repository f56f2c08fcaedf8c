// net_scale: float32(value + bias) * factor, each step rounded once, halves to even. Seven cycles.
`default_nettype none

module net_scale (
    input  wire logic        clk_i,
    input  wire logic        rst_ni,
    input  wire logic [31:0] value_i,
    input  wire logic [31:0] bias_i,
    input  wire logic [31:0] factor_i,
    output logic [31:0]      product_o
);

  // 1: the sum. 2: its highest one to the top. 3: rounded to float32.
  logic [31:0] sum_q, factor_q, factor_q2, factor_q3, normal, normal_q, float, float_q;
  logic [4:0] shift, shift_q, unused_limit;
  logic negative_q;
  wire [31:0] magnitude = sum_q[31] ? -sum_q : sum_q;

  normalise #(
      .WIDTH(32)
  ) to_the_top (
      .value_i(magnitude),
      .limit_i(5'd31),
      .value_o(normal),
      .shift_o(shift),
      .limit_o(unused_limit)
  );

  f32_round round (
      .sign_i(negative_q),
      .exponent_i(10'd158 - 10'(shift_q)),
      .significand_i({normal_q[31:7], normal_q[6:0] != '0}),
      .float_o(float)
  );

  always_ff @(posedge clk_i) begin
    sum_q      <= value_i + bias_i;
    factor_q   <= factor_i;
    normal_q   <= normal;
    shift_q    <= shift;
    negative_q <= sum_q[31];
    factor_q2  <= factor_q;
    float_q    <= float;
    factor_q3  <= factor_q2;
  end

  logic [2:0] unused_flags;

  f32_mul multiply (
      .clk_i,
      .rst_ni,
      .valid_i(1'b1),
      .ready_o(unused_flags[0]),
      .a_i(float_q),
      .b_i(factor_q3),
      .tag_i(1'b0),
      .valid_o(unused_flags[1]),
      .ready_i(1'b1),
      .product_o,
      .tag_o(unused_flags[2])
  );

  wire unused = &{1'b0, unused_flags, unused_limit};

endmodule

`default_nettype wire
