// f32_round: packs a float32, rounded to nearest, ties to even (IEEE 754 4.3.1). No clock.
//
// The significand is 1.23 bits with two more below: the next bit, and the OR of all bits after it.
// A significand whose top bit is zero is subnormal, its exponent must then be 1.
`default_nettype none

module f32_round (
    input  wire logic        sign_i,
    input  wire logic [9:0]  exponent_i,  // biased, 1 and up
    input  wire logic [25:0] significand_i,
    output logic [31:0]      float_o
);

  wire up = significand_i[1] && (significand_i[0] || significand_i[2]);
  wire [9:0] field = significand_i[25] ? exponent_i : '0;
  // A carry out of the fraction lands in the exponent, which is what it should do.
  wire [32:0] magnitude = {field, significand_i[24:2]} + 33'(up);
  wire overflow = magnitude[32:23] >= 10'd255;

  assign float_o = {sign_i, overflow ? 31'h7f80_0000 : magnitude[30:0]};

endmodule

`default_nettype wire
