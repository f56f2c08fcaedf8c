// f32_round_proof: for every exponent and significand, `f32_round` gives the nearest float32, of two
// that are as near the even one. Nearest is said by distances, in units of the bit below the lowest
// one that stays; nothing of the rounding's own logic is repeated. No state: one step is all there is.
`default_nettype none

module f32_round_proof (
    input wire logic        sign_i,
    input wire logic [9:0]  exponent_i,
    input wire logic [25:0] significand_i
);

  logic [31:0] float_o;

  f32_round dut (.*);

  // What its caller keeps: the exponent is at least 1, and 1 where the top bit is zero.
  wire allowed = exponent_i != '0 && exponent_i[9] == 1'b0 && (significand_i[25] || exponent_i == 10'd1);
  always_comb assume (allowed);

  // The result as a number on the operand's scale: 24 bits, four quarters each. A result whose exponent
  // is one higher counts twice.
  wire [7:0] exponent_o = float_o[30:23];
  wire [23:0] mantissa_o = {exponent_o != '0, float_o[22:0]};
  wire doubled = 10'(exponent_o) == exponent_i + 10'd1;
  wire [27:0] value = doubled ? {1'b0, mantissa_o, 3'b0} : {2'b0, mantissa_o, 2'b0};
  wire signed [28:0] error = signed'({1'b0, value}) - signed'(29'(significand_i));
  wire infinite = exponent_o == '1;
  // From here on the nearest float32 would be 2^128: an infinity.
  wire too_large = exponent_i > 10'd254 || (exponent_i == 10'd254 && significand_i >= 26'h3ff_fffe);

  wire sign_kept = float_o[31] == sign_i;
  wire infinity = infinite == too_large && (!infinite || float_o[22:0] == '0);
  wire scale_kept = infinite || doubled || 10'(exponent_o) == exponent_i
      || (exponent_o == '0 && exponent_i == 10'd1);
  wire nearest = infinite || (error >= -29'sd2 && error <= 29'sd2);
  wire ties_to_even = infinite || (error != 29'sd2 && error != -29'sd2) || !float_o[0];

  always_comb begin
    assert (sign_kept);
    assert (infinity);
    assert (scale_kept);
    assert (nearest);
    assert (ties_to_even);
  end

endmodule

`default_nettype wire
