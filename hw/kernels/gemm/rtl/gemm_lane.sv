// gemm_lane: from a sum to an element of c. Nine steps, whatever the mode.
//
// | kind_i    | element_o                                                            |
// |-----------|----------------------------------------------------------------------|
// | 0 int32   | relu(sum + bias), wraps                                              |
// | 1 int8    | (sum + bias) * scale, halves to even, cut off at -128 (relu: 0), 127 |
// | 2 float32 | relu(sum * scale + bias), two roundings; the bias is float32         |
`default_nettype none

module gemm_lane (
    input  wire logic        clk_i,
    input  wire logic        step_i,
    input  wire logic [1:0]  kind_i,
    input  wire logic        with_bias_i,
    input  wire logic        relu_i,
    input  wire logic [31:0] sum_i,
    input  wire logic [31:0] bias_i,
    input  wire logic [31:0] scale_i,
    output logic [31:0]      element_o
);

  localparam int unsigned STEPS_OF_SCALE = 4;
  localparam int unsigned STEPS_OF_ADD = 3;
  wire int8 = kind_i == 2'd1;
  wire float32 = kind_i == 2'd2;

  // The integer bias.
  logic [31:0] added_q, bias_q, scale_q;
  always_ff @(posedge clk_i) begin
    if (step_i) begin
      added_q <= sum_i + (with_bias_i && !float32 ? bias_i : '0);
      bias_q  <= bias_i;
      scale_q <= scale_i;
    end
  end

  // float32: scaled, and beside that the bias or the sum as it is.
  logic [31:0] product, total;
  logic [32*STEPS_OF_SCALE-1:0] waits_q;
  wire [31:0] waited = waits_q[32*STEPS_OF_SCALE-1-:32];
  always_ff @(posedge clk_i) begin
    if (step_i) waits_q <= {waits_q[32*(STEPS_OF_SCALE-1)-1:0], float32 ? bias_q : added_q};
  end

  gemm_scale scale (
      .clk_i,
      .step_i(step_i && (int8 || float32)),
      .value_i(added_q),
      .scale_i(scale_q),
      .product_o(product)
  );

  gemm_add add (
      .clk_i,
      .step_i(step_i && float32 && with_bias_i),
      .x_i(product),
      .y_i(waited),
      .sum_o(total)
  );

  // int8: the whole number is what the exponent moves out of the mantissa to the left. 2^8 and more, and
  // what rounding carries beyond 127, is cut off; NaN becomes 0.
  function automatic logic [7:0] whole_of(input logic [31:0] value, input logic relu);
    logic [7:0] exp;
    logic [31:0] fixed;
    logic [8:0] whole;
    logic huge;
    exp   = value[30:23];
    huge  = exp > 8'd134;
    fixed = {8'b0, 1'b1, value[22:0]} << 4'(exp - 8'd126);
    whole = {1'b0, fixed[31:24]} + 9'(fixed[23] && (fixed[24] || fixed[22:0] != '0));
    if (exp < 8'd126 || (exp == '1 && value[22:0] != '0)) return '0;
    if (value[31]) return relu ? '0 : huge || whole > 9'd128 ? 8'h80 : -whole[7:0];
    return huge || whole > 9'd127 ? 8'h7f : whole[7:0];
  endfunction

  // What no float bias is added to waits for as long as the others. ReLU lets NaN and -0 pass, as torch.
  logic [32*STEPS_OF_ADD-1:0] results_q;
  wire [31:0] result = float32 && with_bias_i ? total : results_q[32*STEPS_OF_ADD-1-:32];
  wire passes = float32 && (result[30:0] > {8'hff, 23'b0} || result[30:0] == '0);

  always_ff @(posedge clk_i) begin
    if (step_i) begin
      results_q <= {
        results_q[32*(STEPS_OF_ADD-1)-1:0],
        int8 ? 32'(whole_of(product, relu_i)) : float32 ? product : waited
      };
      element_o <= relu_i && result[31] && !passes ? '0 : result;
    end
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) step_i && relu_i && kind_i == 2'd0 |=> !element_o[31])
  else $error("gemm_lane: %h has passed ReLU", element_o);
`endif

endmodule

`default_nettype wire
