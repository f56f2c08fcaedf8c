// gemm_scale: int32 times float32 as IEEE 754 does it: the integer is rounded to float32, then the
// product (halves to even; subnormal numbers included). Four steps.
`default_nettype none

module gemm_scale (
    input  wire logic        clk_i,
    input  wire logic        step_i,
    input  wire logic [31:0] value_i,
    input  wire logic [31:0] scale_i,
    output logic [31:0]      product_o
);

  localparam logic [31:0] NAN = 32'h7fc0_0000;

  // Zeros above the highest one, and the bits with that one in bit 31.
  function automatic logic [36:0] normalised(input logic [31:0] bits);
    logic [4:0] zeros;
    logic [31:0] moved;
    moved = bits;
    for (int i = 4; i >= 0; --i) begin
      zeros[i] = moved >> (32 - 2 ** i) == '0;
      if (zeros[i]) moved = moved << 2 ** i;
    end
    return {zeros, moved};
  endfunction

  // 1: the magnitude with its highest one in bit 31, and the scale's likewise.
  logic negative_q, zero_q, infinite_q, nan_q;
  logic [31:0] value_q;
  logic [4:0] value_zeros_q;
  logic [23:0] factor_q;
  logic signed [9:0] factor_exp_q;

  always_ff @(posedge clk_i) begin
    if (step_i) begin
      automatic logic subnormal = scale_i[30:23] == '0;
      automatic logic [28:0] factor = 29'(normalised({!subnormal, scale_i[22:0], 8'b0}) >> 8);
      negative_q   <= value_i[31] ^ scale_i[31];
      zero_q       <= value_i == '0 || scale_i[30:0] == '0;
      infinite_q   <= scale_i[30:23] == '1;
      nan_q        <= scale_i[30:23] == '1 && (scale_i[22:0] != '0 || value_i == '0);
      factor_q     <= factor[23:0];
      factor_exp_q <= (subnormal ? 10'sd1 : 10'(scale_i[30:23])) - 10'(factor[28:24]);
      {value_zeros_q, value_q} <= normalised(value_i[31] ? -value_i : value_i);
    end
  end

  // 2: the integer as a float. Its exponent goes to the scale's, with float32's bias off already.
  logic negative_q2, zero_q2, infinite_q2, nan_q2;
  logic [23:0] left_q, right_q;
  logic signed [9:0] exp_q2;

  always_ff @(posedge clk_i) begin
    if (step_i) begin
      automatic logic up = value_q[7] && (value_q[8] || value_q[6:0] != '0);
      automatic logic [24:0] rounded = {1'b0, value_q[31:8]} + 25'(up);
      {negative_q2, zero_q2, infinite_q2, nan_q2} <= {negative_q, zero_q, infinite_q, nan_q};
      left_q  <= rounded[24] ? rounded[24:1] : rounded[23:0];
      right_q <= factor_q;
      exp_q2  <= factor_exp_q + 10'sd31 - 10'(value_zeros_q) + 10'(rounded[24]);
    end
  end

  // 3: the product of 24 x 24 bits.
  logic negative_q3, zero_q3, infinite_q3, nan_q3;
  logic [47:0] product_q;
  logic signed [9:0] exp_q3;

  always_ff @(posedge clk_i) begin
    if (step_i) begin
      {negative_q3, zero_q3, infinite_q3, nan_q3} <= {negative_q2, zero_q2, infinite_q2, nan_q2};
      product_q <= 48'(left_q) * 48'(right_q);
      exp_q3    <= exp_q2;
    end
  end

  // 4: rounded. Below the smallest exponent the bits move right; whether any that fell off was a one,
  // is all that matters of them. The mantissa's highest bit adds one to the exponent, and so does what
  // rounding carries over it.
  always_ff @(posedge clk_i) begin
    if (step_i) begin
      automatic logic signed [9:0] exp = exp_q3 + 10'(product_q[47]);
      automatic logic [47:0] normal = product_q[47] ? product_q : product_q << 1;
      automatic logic subnormal = exp < 10'sd1;
      automatic logic [9:0] right = subnormal ? 10'sd1 - exp : '0;
      automatic logic [4:0] most = right > 10'd25 ? 5'd25 : right[4:0];
      automatic logic [25:0] kept = normal[47:22] >> most;
      automatic logic lost = normal[21:0] != '0 || kept << most != normal[47:22];
      automatic logic up = kept[1] && (kept[2] || kept[0] || lost);
      automatic logic [7:0] field = subnormal ? '0 : exp[7:0] - 8'd1;
      if (nan_q3) product_o <= NAN;
      else if (infinite_q3 || (!zero_q3 && exp > 10'sd254)) product_o <= {negative_q3, 8'hff, 23'b0};
      else if (zero_q3) product_o <= {negative_q3, 31'b0};
      else product_o <= {negative_q3, {field, 23'b0} + 31'(kept[25:2]) + 31'(up)};
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) !step_i |=> $stable(product_o))
  else $error("gemm_scale: the product changes without a step");
`endif

endmodule

`default_nettype wire
