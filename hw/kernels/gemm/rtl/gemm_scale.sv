// gemm_scale: int32 times float32 as IEEE 754 does it: the integer is rounded to float32, then the
// product (halves to even; subnormal numbers included). Eleven steps; what comes with valid_i goes on
// by itself, and a step without a value keeps still.
`default_nettype none

module gemm_scale (
    input  wire logic        clk_i,
    input  wire logic        valid_i,
    input  wire logic [31:0] value_i,
    input  wire logic [31:0] scale_i,
    output logic [31:0]      product_o
);

  localparam int unsigned STEPS = 11;
  localparam logic [31:0] NAN = 32'h7fc0_0000;

  logic [STEPS-1:1] valid_q;  // bit i: step i has a value
  always_ff @(posedge clk_i) valid_q <= {valid_q[STEPS-2:1], valid_i};

  // What both factors say before they are multiplied: negative, zero, infinite, NaN.
  logic [3:0] kinds_q[1:STEPS-1];
  always_ff @(posedge clk_i) begin
    kinds_q[1] <= {
      value_i[31] ^ scale_i[31],
      value_i == '0 || scale_i[30:0] == '0,
      scale_i[30:23] == '1,
      scale_i[30:23] == '1 && (scale_i[22:0] != '0 || value_i == '0)
    };
    for (int unsigned i = 2; i < STEPS; ++i) kinds_q[i] <= kinds_q[i-1];
  end

  // 1: the magnitudes. 2 and 3: their highest ones to the top, in large steps and in small ones.
  logic [31:0] value_q, value_q2, value_q3;
  logic [31:0] factor_q, factor_q2, factor_q3;  // the scale's, with eight zeros behind it
  logic [4:0] zeros_q2, zeros_q3, factor_zeros_q2, factor_zeros_q3;
  logic [7:0] scale_exp_q, scale_exp_q2, scale_exp_q3;

  // Zeros above the highest one, counted by powers of two from 2^high to 2^low, and the bits moved by them.
  function automatic logic [36:0] moved(input logic [36:0] given, input int high, input int low);
    logic [4:0] zeros;
    logic [31:0] bits;
    {zeros, bits} = given;
    for (int i = high; i >= low; --i) begin
      zeros[i] = bits >> (32 - 2 ** i) == '0;
      if (zeros[i]) bits = bits << 2 ** i;
    end
    return {zeros, bits};
  endfunction

  always_ff @(posedge clk_i) begin
    if (valid_i) begin
      value_q     <= (value_i ^ {32{value_i[31]}}) + 32'(value_i[31]);
      factor_q    <= {scale_i[30:23] != '0, scale_i[22:0], 8'd0};
      scale_exp_q <= scale_i[30:23] == '0 ? 8'd1 : scale_i[30:23];
    end
    if (valid_q[1]) begin
      {zeros_q2, value_q2}         <= moved({5'd0, value_q}, 4, 3);
      {factor_zeros_q2, factor_q2} <= moved({5'd0, factor_q}, 4, 3);
      scale_exp_q2                 <= scale_exp_q;
    end
    if (valid_q[2]) begin
      {zeros_q3, value_q3}         <= moved({zeros_q2, value_q2}, 2, 0);
      {factor_zeros_q3, factor_q3} <= moved({factor_zeros_q2, factor_q2}, 2, 0);
      scale_exp_q3                 <= scale_exp_q2;
    end
  end

  // 4: the integer as a float; a carry leaves zeros below the highest one. Its exponent goes to the
  // scale's, with float32's bias off already. 5, 6: the product of 24 x 24 bits.
  logic carry_q4;
  logic [23:0] left_q, right_q;
  logic signed [9:0] exp_q4, exp_q5, exp_q6;
  logic [47:0] product_q5, product_q6;

  always_ff @(posedge clk_i) begin
    if (valid_q[3]) begin
      automatic logic up = value_q3[7] && (value_q3[8] || value_q3[6:0] != '0);
      automatic logic [24:0] rounded = {1'b0, value_q3[31:8]} + 25'(up);
      carry_q4 <= rounded[24];
      left_q   <= {rounded[24] || rounded[23], rounded[22:0]};
      right_q  <= factor_q3[31:8];
      exp_q4   <= 10'(scale_exp_q3) - 10'(factor_zeros_q3) + 10'sd31 - 10'(zeros_q3);
    end
    if (valid_q[4]) begin
      product_q5 <= 48'(left_q) * 48'(right_q);
      exp_q5     <= exp_q4 + 10'(carry_q4);
    end
    if (valid_q[5]) begin
      product_q6 <= product_q5;
      exp_q6     <= exp_q5;
    end
  end

  // 7: its highest one to the top. 8: below the smallest exponent the bits have to move right. 9, 10: they do,
  // in large steps and in small ones; whether any that fell off was a one, is all that matters of them.
  logic signed [9:0] exp_q7;
  logic [47:0] normal_q7;
  logic [25:0] bits_q8, bits_q9, bits_q10;
  logic [4:0] right_q8;
  logic [2:0] right_q9;
  logic [7:0] field_q8, field_q9, field_q10;
  logic lost_q8, lost_q9, lost_q10, huge_q8, huge_q9, huge_q10;

  always_ff @(posedge clk_i) begin
    if (valid_q[6]) begin
      exp_q7    <= exp_q6 + 10'(product_q6[47]);
      normal_q7 <= product_q6[47] ? product_q6 : product_q6 << 1;
    end
    if (valid_q[7]) begin
      automatic logic subnormal = exp_q7 < 10'sd1;
      automatic logic [9:0] right = 10'sd1 - exp_q7;
      right_q8 <= !subnormal ? '0 : right > 10'd25 ? 5'd25 : right[4:0];
      field_q8 <= subnormal ? '0 : exp_q7[7:0];
      huge_q8  <= exp_q7 > 10'sd254;
      bits_q8  <= normal_q7[47:22];
      lost_q8  <= normal_q7[21:0] != '0;
    end
    if (valid_q[8]) begin
      automatic logic [25:0] fallen = bits_q8 & ~(26'h3ff_ffff << {right_q8[4:3], 3'd0});
      bits_q9  <= bits_q8 >> {right_q8[4:3], 3'd0};
      lost_q9  <= lost_q8 || fallen != '0;
      right_q9 <= right_q8[2:0];
      field_q9 <= field_q8;
      huge_q9  <= huge_q8;
    end
    if (valid_q[9]) begin
      automatic logic [6:0] fallen = bits_q9[6:0] & ~(7'h7f << right_q9);
      bits_q10  <= bits_q9 >> right_q9;
      lost_q10  <= lost_q9 || fallen != '0;
      field_q10 <= field_q9;
      huge_q10  <= huge_q9;
    end
  end

  // 11: rounded. What it carries over the mantissa adds one to the exponent.
  always_ff @(posedge clk_i) begin
    if (valid_q[10]) begin
      automatic logic negative, zero, infinite, nan;
      automatic logic up = bits_q10[1] && (bits_q10[2] || bits_q10[0] || lost_q10);
      {negative, zero, infinite, nan} = kinds_q[10];
      if (nan) product_o <= NAN;
      else if (infinite || (!zero && huge_q10)) product_o <= {negative, 8'hff, 23'b0};
      else if (zero) product_o <= {negative, 31'b0};
      else product_o <= {negative, {field_q10, bits_q10[24:2]} + 31'(up)};
    end
  end

  // The highest bit is there whenever the exponent's field is.
  wire unused = &{1'b0, bits_q10[25], factor_q3[7:0]};

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) !valid_q[10] |=> $stable(product_o))
  else $error("gemm_scale: the product changes without a value");
`endif

endmodule

`default_nettype wire
