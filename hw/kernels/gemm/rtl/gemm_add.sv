// gemm_add: float32 plus float32, as IEEE 754 does it (halves to even; subnormal numbers included).
// Three steps.
`default_nettype none

module gemm_add (
    input  wire logic        clk_i,
    input  wire logic        step_i,
    input  wire logic [31:0] x_i,
    input  wire logic [31:0] y_i,
    output logic [31:0]      sum_o
);

  localparam logic [31:0] NAN = 32'h7fc0_0000;

  // 1: the smaller one moves to the exponent of the larger one. Three more bits are enough to round
  // right; the last of them stands for all that fall off.
  logic negative_q, subtract_q, nan_q, infinite_q;
  logic [7:0] exp_q;
  logic [23:0] big_q;
  logic [26:0] little_q;

  always_ff @(posedge clk_i) begin
    if (step_i) begin
      automatic logic swap = x_i[30:0] < y_i[30:0];
      automatic logic [31:0] big = swap ? y_i : x_i;
      automatic logic [31:0] little = swap ? x_i : y_i;
      automatic logic [7:0] big_exp = big[30:23] == '0 ? 8'd1 : big[30:23];
      automatic logic [7:0] little_exp = little[30:23] == '0 ? 8'd1 : little[30:23];
      automatic logic [7:0] distance = big_exp - little_exp;
      automatic logic [4:0] right = distance > 8'd26 ? 5'd26 : distance[4:0];
      automatic logic [25:0] whole = {little[30:23] != '0, little[22:0], 2'b0};
      automatic logic [25:0] moved = whole >> right;
      negative_q <= big[31];
      subtract_q <= big[31] != little[31];
      infinite_q <= big[30:23] == '1;
      nan_q      <= big[30:0] > {8'hff, 23'b0}
          || (big[30:23] == '1 && big[30:0] == little[30:0] && big[31] != little[31]);
      exp_q      <= big_exp;
      big_q      <= {big[30:23] != '0, big[22:0]};
      little_q   <= {moved, moved << right != whole};
    end
  end

  // 2: the sum. An exact zero is positive unless both were negative.
  logic negative_q2, nan_q2, infinite_q2;
  logic [7:0] exp_q2;
  logic [27:0] sum_q;

  always_ff @(posedge clk_i) begin
    if (step_i) begin
      automatic logic [27:0] whole = {1'b0, big_q, 3'b0};
      sum_q       <= subtract_q ? whole - 28'(little_q) : whole + 28'(little_q);
      negative_q2 <= negative_q && !(subtract_q && whole[26:0] == little_q);
      exp_q2      <= exp_q;
      nan_q2      <= nan_q;
      infinite_q2 <= infinite_q;
    end
  end

  // 3: its highest one back in place, as far as the exponent goes down; rounded.
  always_ff @(posedge clk_i) begin
    if (step_i) begin
      automatic logic [26:0] normal = sum_q[27] ? {sum_q[27:2], sum_q[1] || sum_q[0]} : sum_q[26:0];
      automatic logic [8:0] field = sum_q[27] ? 9'(exp_q2) : 9'(exp_q2) - 9'd1;
      automatic logic up;
      for (int i = 4; i >= 0; --i) begin
        if (normal >> (27 - 2 ** i) == '0 && field >= 9'(2 ** i)) begin
          normal = normal << 2 ** i;
          field  = field - 9'(2 ** i);
        end
      end
      up = normal[2] && (normal[3] || normal[1:0] != '0);
      if (nan_q2) sum_o <= NAN;
      else if (infinite_q2 || field > 9'd253) sum_o <= {negative_q2, 8'hff, 23'b0};
      else if (sum_q == '0) sum_o <= {negative_q2, 31'b0};
      else sum_o <= {negative_q2, {field[7:0], 23'b0} + 31'(normal[26:3]) + 31'(up)};
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) !step_i |=> $stable(sum_o))
  else $error("gemm_add: the sum changes without a step");
`endif

endmodule

`default_nettype wire
