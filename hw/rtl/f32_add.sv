// f32_add: float32 a + b, a sum a cycle, five cycles from operands to sum.
//
// Rounds to nearest, ties to even; subnormals are kept. NaN as an x86 gives it: the first operand
// that is one, made quiet; infinity minus infinity gives 0xffc00000. tag_i goes along with its
// operands. The pipeline stands still while a finished sum is not taken.
`default_nettype none

module f32_add #(
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
    output logic [31:0]               sum_o,
    output logic [TAG_WIDTH-1:0]      tag_o
);

  localparam int unsigned STAGES = 5;

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

  // 1: the operand of larger magnitude first; NaN and infinity are settled here.
  wire swap = b_i[30:0] > a_i[30:0];
  wire [31:0] larger = swap ? b_i : a_i;
  wire [30:0] smaller = swap ? a_i[30:0] : b_i[30:0];
  wire [7:0] exponent_larger = larger[30:23] == '0 ? 8'd1 : larger[30:23];
  wire [7:0] exponent_smaller = smaller[30:23] == '0 ? 8'd1 : smaller[30:23];
  wire a_nan = a_i[30:0] > 31'h7f80_0000;
  wire b_nan = b_i[30:0] > 31'h7f80_0000;
  wire both_infinite = smaller[30:23] == '1;  // if neither is NaN

  logic sign_1, subtract_1, special_1;
  logic [7:0] exponent_1, distance_1;
  logic [23:0] larger_1, smaller_1;
  logic [31:0] result_1;

  always_ff @(posedge clk_i) begin
    if (step) begin
      sign_1     <= larger[31];
      subtract_1 <= a_i[31] != b_i[31];
      exponent_1 <= exponent_larger;
      distance_1 <= exponent_larger - exponent_smaller;
      larger_1      <= {larger[30:23] != '0, larger[22:0]};
      smaller_1    <= {smaller[30:23] != '0, smaller[22:0]};
      special_1  <= larger[30:23] == '1;
      if (a_nan) result_1 <= a_i | 32'h0040_0000;
      else if (b_nan) result_1 <= b_i | 32'h0040_0000;
      else if (both_infinite && a_i[31] != b_i[31]) result_1 <= 32'hffc0_0000;
      else result_1 <= larger;
    end
  end

  // 2: the smaller one moves under the larger one; what falls off is kept in the lowest bit.
  wire [26:0] wide = {smaller_1, 3'b000};
  wire [4:0] distance = distance_1 > 8'd27 ? 5'd27 : distance_1[4:0];
  wire lost = (wide & ~(27'h7ff_ffff << distance)) != '0;
  wire [26:0] moved = wide >> distance;

  logic sign_2, subtract_2, special_2;
  logic [7:0] exponent_2;
  logic [23:0] larger_2;
  logic [26:0] smaller_2;
  logic [31:0] result_2;

  always_ff @(posedge clk_i) begin
    if (step) begin
      sign_2     <= sign_1;
      subtract_2 <= subtract_1;
      special_2  <= special_1;
      exponent_2 <= exponent_1;
      larger_2      <= larger_1;
      smaller_2    <= {moved[26:1], moved[0] || lost};
      result_2   <= result_1;
    end
  end

  // 3: add or subtract. An exact zero out of a subtraction is +0.
  wire [27:0] sum = subtract_2 ? {1'b0, larger_2, 3'b000} - {1'b0, smaller_2}
      : {1'b0, larger_2, 3'b000} + {1'b0, smaller_2};

  logic sign_3, special_3;
  logic [7:0] exponent_3;
  logic [27:0] sum_3;
  logic [31:0] result_3;

  always_ff @(posedge clk_i) begin
    if (step) begin
      sign_3     <= sign_2 && !(subtract_2 && sum == '0);
      special_3  <= special_2;
      exponent_3 <= exponent_2;
      sum_3      <= sum;
      result_3   <= result_2;
    end
  end

  // 4: the leading one to the top or near it, unless the exponent would fall below 1.
  wire [4:0] limit = exponent_3 > 8'd31 ? 5'd31 : exponent_3[4:0];
  logic [27:0] normal;
  logic [4:0] shift, rest;

  normalise #(
      .WIDTH(28),
      .LOW(2)
  ) near_the_top (
      .value_i(sum_3),
      .limit_i(limit),
      .value_o(normal),
      .shift_o(shift),
      .limit_o(rest)
  );

  logic sign_4, special_4;
  logic [9:0] exponent_4;
  logic [27:0] significand_4;
  logic [1:0] rest_4;
  logic [31:0] result_4;

  always_ff @(posedge clk_i) begin
    if (step) begin
      sign_4        <= sign_3;
      special_4     <= special_3;
      exponent_4    <= 10'(exponent_3) + 10'd1 - 10'(shift);
      significand_4 <= normal;
      rest_4        <= rest > 5'd3 ? 2'd3 : rest[1:0];
      result_4      <= result_3;
    end
  end

  // 5: the rest of the way to the top, and round.
  logic [27:0] top;
  logic [1:0] last_shift, unused_limit;
  logic [31:0] rounded;

  normalise #(
      .WIDTH(28),
      .SHIFT_BITS(2)
  ) to_the_top (
      .value_i(significand_4),
      .limit_i(rest_4),
      .value_o(top),
      .shift_o(last_shift),
      .limit_o(unused_limit)
  );

  f32_round round (
      .sign_i(sign_4),
      .exponent_i(exponent_4 - 10'(last_shift)),
      .significand_i({top[27:3], top[2:0] != '0}),
      .float_o(rounded)
  );

  always_ff @(posedge clk_i) begin
    if (step) sum_o <= special_4 ? result_4 : rounded;
  end

  wire unused = &{1'b0, unused_limit};

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) disable iff (!rst_ni)
      valid_o && !ready_i |=> valid_o && $stable(sum_o) && $stable(tag_o))
  else $error("f32_add: a sum that was not taken yet has changed");
`endif

endmodule

`default_nettype wire
