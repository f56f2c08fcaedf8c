// gemm_add: float32 plus float32, as IEEE 754 does it (halves to even; subnormal numbers included).
// Eight steps; what comes with valid_i goes on by itself, and a step without a value keeps still.
`default_nettype none

module gemm_add (
    input  wire logic        clk_i,
    input  wire logic        valid_i,
    input  wire logic [31:0] x_i,
    input  wire logic [31:0] y_i,
    output logic [31:0]      sum_o
);

  localparam int unsigned STEPS = 8;
  localparam logic [31:0] NAN = 32'h7fc0_0000;

  logic [STEPS-1:1] valid_q;  // bit i: step i has a value
  always_ff @(posedge clk_i) valid_q <= {valid_q[STEPS-2:1], valid_i};

  // 1: the larger one first. 2: how far the smaller one has to move to its exponent. 3, 4: it moves, in large
  // steps and in small ones. Three more bits are enough to round right; the last of them stands for all
  // that fall off.
  logic [31:0] big_q, little_q;
  logic negative_q2, negative_q3, negative_q4;
  logic subtract_q2, subtract_q3, subtract_q4;
  logic [1:0] special_q2, special_q3, special_q4;  // NaN, infinite
  logic [7:0] exp_q2, exp_q3, exp_q4;
  logic [23:0] big_q2, big_q3, big_q4;
  logic [4:0] right_q2;
  logic [2:0] right_q3;
  logic [26:0] little_q2, little_q3, little_q4;

  always_ff @(posedge clk_i) begin
    if (valid_i) {big_q, little_q} <= x_i[30:0] < y_i[30:0] ? {y_i, x_i} : {x_i, y_i};
    if (valid_q[1]) begin
      automatic logic [7:0] big_exp = big_q[30:23] == '0 ? 8'd1 : big_q[30:23];
      automatic logic [7:0] distance = big_exp - (little_q[30:23] == '0 ? 8'd1 : little_q[30:23]);
      automatic logic infinite = big_q[30:23] == '1;
      automatic logic nan = infinite
          && (big_q[22:0] != '0 || (little_q[30:23] == '1 && big_q[31] != little_q[31]));
      right_q2    <= distance > 8'd26 ? 5'd26 : distance[4:0];
      negative_q2 <= big_q[31];
      subtract_q2 <= big_q[31] != little_q[31];
      special_q2  <= {nan, infinite};
      exp_q2      <= big_exp;
      big_q2      <= {big_q[30:23] != '0, big_q[22:0]};
      little_q2   <= {little_q[30:23] != '0, little_q[22:0], 3'b0};
    end
    if (valid_q[2]) begin
      automatic logic [26:0] fallen = little_q2 & ~(27'h7ff_ffff << {right_q2[4:3], 3'd0});
      automatic logic [26:0] moved = little_q2 >> {right_q2[4:3], 3'd0};
      little_q3   <= {moved[26:1], moved[0] || fallen != '0};
      right_q3    <= right_q2[2:0];
      negative_q3 <= negative_q2;
      subtract_q3 <= subtract_q2;
      special_q3  <= special_q2;
      exp_q3      <= exp_q2;
      big_q3      <= big_q2;
    end
    if (valid_q[3]) begin
      automatic logic [6:0] fallen = little_q3[6:0] & ~(7'h7f << right_q3);
      automatic logic [26:0] moved = little_q3 >> right_q3;
      little_q4   <= {moved[26:1], moved[0] || fallen != '0};
      negative_q4 <= negative_q3;
      subtract_q4 <= subtract_q3;
      special_q4  <= special_q3;
      exp_q4      <= exp_q3;
      big_q4      <= big_q3;
    end
  end

  // 5: the sum. 6, 7: its highest one back in place, as far as the exponent goes down. An exact zero is
  // positive unless both were negative.
  logic negative_q5, negative_q6, negative_q7, subtract_q5, zero_q6, zero_q7;
  logic [1:0] special_q5, special_q6, special_q7;
  logic [7:0] exp_q5;
  logic [27:0] sum_q5;
  logic [8:0] field_q6, field_q7;  // the exponent, less the mantissa's highest bit
  logic [26:0] normal_q6, normal_q7;

  function automatic logic [35:0] raised(input logic [35:0] given, input int high, input int low);
    logic [8:0] field;
    logic [26:0] bits;
    {field, bits} = given;
    for (int i = high; i >= low; --i) begin
      if (bits >> (27 - 2 ** i) == '0 && field >= 9'(2 ** i)) begin
        bits  = bits << 2 ** i;
        field = field - 9'(2 ** i);
      end
    end
    return {field, bits};
  endfunction

  always_ff @(posedge clk_i) begin
    if (valid_q[4]) begin
      // One adder for both signs; the bit below carries the one that a complement lacks.
      sum_q5      <= 28'(({1'b0, big_q4, 4'b1} + {28'(little_q4) ^ {28{subtract_q4}}, subtract_q4}) >> 1);
      negative_q5 <= negative_q4;
      subtract_q5 <= subtract_q4;
      special_q5  <= special_q4;
      exp_q5      <= exp_q4;
    end
    if (valid_q[5]) begin
      automatic logic [8:0] field = sum_q5[27] ? 9'(exp_q5) : 9'(exp_q5) - 9'd1;
      {field_q6, normal_q6} <= raised({field, sum_q5[27] ? {sum_q5[27:2], sum_q5[1] || sum_q5[0]} : sum_q5[26:0]}, 4, 3);
      zero_q6     <= sum_q5 == '0;
      negative_q6 <= negative_q5 && !(subtract_q5 && sum_q5 == '0);
      special_q6  <= special_q5;
    end
    if (valid_q[6]) begin
      {field_q7, normal_q7} <= raised({field_q6, normal_q6}, 2, 0);
      zero_q7     <= zero_q6;
      negative_q7 <= negative_q6;
      special_q7  <= special_q6;
    end
  end

  // 8: rounded, by a carry into one adder.
  always_ff @(posedge clk_i) begin
    if (valid_q[7]) begin
      automatic logic up = normal_q7[2] && (normal_q7[3] || normal_q7[1:0] != '0);
      automatic logic [30:0] total =
          31'(({field_q7[7:0], normal_q7[25:3], 1'b1} + {7'b0, normal_q7[26], 23'b0, up}) >> 1);
      if (special_q7[1]) sum_o <= NAN;
      else if (special_q7[0] || field_q7 > 9'd253) sum_o <= {negative_q7, 8'hff, 23'b0};
      else if (zero_q7) sum_o <= {negative_q7, 31'b0};
      else sum_o <= {negative_q7, total};
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) !valid_q[7] |=> $stable(sum_o))
  else $error("gemm_add: the sum changes without a value");
`endif

endmodule

`default_nettype wire
