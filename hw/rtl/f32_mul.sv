// f32_mul: float32 a * b, a product a cycle, four cycles from operands to product.
//
// Rounds to nearest, ties to even; subnormals are kept. NaN as an x86 gives it: the first operand
// that is one, made quiet; infinity times zero gives 0xffc00000. tag_i goes along with its operands.
// The pipeline stands still while a finished product is not taken.
`default_nettype none

module f32_mul #(
    parameter int unsigned TAG_WIDTH = 1
) (
    input  wire logic                 clk_i,
    input  wire logic                 rst_ni,
    input  wire logic                 valid_i,
    output logic                      ready_o,
    input  wire logic [31:0]          a_i,
    input  wire logic [31:0]          b_i,
    input  wire logic [TAG_WIDTH-1:0] tag_i,
    output logic                      valid_o,
    input  wire logic                 ready_i,
    output logic [31:0]               product_o,
    output logic [TAG_WIDTH-1:0]      tag_o
);

  localparam int unsigned STAGES = 4;

  logic [STAGES-1:0] valid_q;
  logic [TAG_WIDTH*STAGES-1:0] tag_q;
  wire step = ready_i || !valid_o;

  assign ready_o = step;
  assign valid_o = valid_q[STAGES-1];
  assign tag_o   = tag_q[TAG_WIDTH*STAGES-1-:TAG_WIDTH];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else if (step) valid_q <= {valid_q[STAGES-2:0], valid_i};
  end

  always_ff @(posedge clk_i) begin
    if (step) tag_q <= (TAG_WIDTH * STAGES)'({tag_q, tag_i});
  end

  // 1: unpack; NaN and infinity are settled here.
  wire [9:0] exponent_a = a_i[30:23] == '0 ? 10'd1 : 10'(a_i[30:23]);
  wire [9:0] exponent_b = b_i[30:23] == '0 ? 10'd1 : 10'(b_i[30:23]);
  wire a_nan = a_i[30:0] > 31'h7f80_0000;
  wire b_nan = b_i[30:0] > 31'h7f80_0000;
  wire any_zero = a_i[30:0] == '0 || b_i[30:0] == '0;
  wire sign = a_i[31] ^ b_i[31];

  logic sign_1, special_1;
  logic [9:0] exponent_1;  // of a product in 1..2, biased; two's complement
  logic [23:0] a_1, b_1;
  logic [31:0] result_1;

  always_ff @(posedge clk_i) begin
    if (step) begin
      sign_1     <= sign;
      special_1  <= a_i[30:23] == '1 || b_i[30:23] == '1;
      exponent_1 <= exponent_a + exponent_b - 10'd127;
      a_1        <= {a_i[30:23] != '0, a_i[22:0]};
      b_1        <= {b_i[30:23] != '0, b_i[22:0]};
      if (a_nan) result_1 <= a_i | 32'h0040_0000;
      else if (b_nan) result_1 <= b_i | 32'h0040_0000;
      else if (any_zero) result_1 <= 32'hffc0_0000;
      else result_1 <= {sign, 31'h7f80_0000};
    end
  end

  // 2: multiply the significands: two DSP48E1.
  logic sign_2, special_2;
  logic [9:0] exponent_2;
  logic [47:0] product_2;
  logic [31:0] result_2;

  always_ff @(posedge clk_i) begin
    if (step) begin
      sign_2     <= sign_1;
      special_2  <= special_1;
      exponent_2 <= exponent_1;
      product_2  <= 48'(a_1) * 48'(b_1);
      result_2   <= result_1;
    end
  end

  // 3: the leading one to the top or near it, unless the exponent would fall below 1; or to the right
  // until the exponent is 1. The top bit of the product stands for 2..4, hence exponent + 1.
  wire negative = exponent_2[9];
  wire [9:0] below = -exponent_2;
  wire [5:0] right = below > 10'd63 ? 6'd63 : below[5:0];
  wire lost = (product_2 & ~(48'hffff_ffff_ffff << right)) != '0;
  wire [5:0] limit = exponent_2 > 10'd63 ? 6'd63 : exponent_2[5:0];
  wire [47:0] moved = product_2 >> right;
  logic [47:0] normal;
  logic [5:0] shift, rest;

  normalise #(
      .WIDTH(48),
      .LOW(2)
  ) near_the_top (
      .value_i(product_2),
      .limit_i(limit),
      .value_o(normal),
      .shift_o(shift),
      .limit_o(rest)
  );

  logic sign_3, special_3;
  logic [9:0] exponent_3;
  logic [28:0] significand_3;  // with three bits more: the next stage shifts by at most three
  logic [1:0] rest_3;
  logic [31:0] result_3;

  always_ff @(posedge clk_i) begin
    if (step) begin
      sign_3    <= sign_2;
      special_3 <= special_2;
      result_3  <= result_2;
      if (negative) begin
        exponent_3    <= 10'd1;
        significand_3 <= {moved[47:20], moved[19:0] != '0 || lost};
        rest_3        <= '0;
      end else begin
        exponent_3    <= exponent_2 + 10'd1 - 10'(shift);
        significand_3 <= {normal[47:20], normal[19:0] != '0};
        rest_3        <= rest > 6'd3 ? 2'd3 : rest[1:0];
      end
    end
  end

  // 4: the rest of the way to the top, and round.
  logic [28:0] top;
  logic [1:0] last_shift, unused_limit;
  logic [31:0] rounded;

  normalise #(
      .WIDTH(29),
      .SHIFT_BITS(2)
  ) to_the_top (
      .value_i(significand_3),
      .limit_i(rest_3),
      .value_o(top),
      .shift_o(last_shift),
      .limit_o(unused_limit)
  );

  f32_round round (
      .sign_i(sign_3),
      .exponent_i(exponent_3 - 10'(last_shift)),
      .significand_i({top[28:4], top[3:0] != '0}),
      .float_o(rounded)
  );

  always_ff @(posedge clk_i) begin
    if (step) product_o <= special_3 ? result_3 : rounded;
  end

  wire unused = &{1'b0, unused_limit};

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_o && !ready_i |=> valid_o && $stable(product_o) && $stable(tag_o))
  else $error("f32_mul: a product that was not taken yet has changed");
`endif

endmodule

`default_nettype wire
