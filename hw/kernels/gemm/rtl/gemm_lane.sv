// gemm_lane: from a sum to an element of c. Twenty-two steps, whatever the mode; what comes with valid_i goes
// on by itself.
//
// | kind_i    | element_o                                                            |
// |-----------|----------------------------------------------------------------------|
// | 0 int32   | relu(sum + bias), wraps                                              |
// | 1 int8    | (sum + bias) * scale, halves to even, cut off at -128 (relu: 0), 127 |
// | 2 float32 | relu(sum * scale + bias), two roundings; the bias is float32         |
`default_nettype none

module gemm_lane (
    input  wire logic        clk_i,
    input  wire logic        valid_i,
    input  wire logic [1:0]  kind_i,
    input  wire logic        with_bias_i,
    input  wire logic        relu_i,
    input  wire logic [31:0] sum_i,
    input  wire logic [31:0] bias_i,
    input  wire logic [31:0] scale_i,
    output logic [31:0]      element_o
);

  localparam int unsigned STEPS_OF_SCALE = 11;
  localparam int unsigned STEPS_OF_ADD = 8;
  localparam int unsigned STEPS = 2 + STEPS_OF_SCALE + STEPS_OF_ADD + 1;

  // A copy of the mode for each lane, a cycle late: the first sum of a run comes long after.
  logic int8_q, float32_q, with_bias_q, relu_q;

  replica #(
      .WIDTH(4)
  ) mode (
      .clk_i,
      .data_i({kind_i == 2'd1, kind_i == 2'd2, with_bias_i, relu_i}),
      .data_o({int8_q, float32_q, with_bias_q, relu_q})
  );

  logic [STEPS-1:1] valid_q;  // bit i: step i has a value
  always_ff @(posedge clk_i) valid_q <= {valid_q[STEPS-2:1], valid_i};

  // 1, 2: the integer bias.
  logic [31:0] sum_q, bias_q, scale_q, added_q, bias_q2, scale_q2;
  always_ff @(posedge clk_i) begin
    sum_q    <= sum_i;
    bias_q   <= bias_i;
    scale_q  <= scale_i;
    added_q  <= sum_q + (with_bias_q && !float32_q ? bias_q : '0);
    bias_q2  <= bias_q;
    scale_q2 <= scale_q;
  end

  // float32: scaled, and beside that the bias or the sum as it is.
  logic [31:0] product, total;
  logic [32*STEPS_OF_SCALE-1:0] waits_q;
  wire [31:0] waited = waits_q[32*STEPS_OF_SCALE-1-:32];
  always_ff @(posedge clk_i) begin
    waits_q <= {waits_q[32*(STEPS_OF_SCALE-1)-1:0], float32_q ? bias_q2 : added_q};
  end

  gemm_scale scale (
      .clk_i,
      .valid_i(valid_q[2] && (int8_q || float32_q)),
      .value_i(added_q),
      .scale_i(scale_q2),
      .product_o(product)
  );

  gemm_add add (
      .clk_i,
      .valid_i(valid_q[2+STEPS_OF_SCALE] && float32_q && with_bias_q),
      .x_i(product),
      .y_i(waited),
      .sum_o(total)
  );

  // int8: the whole number is what the exponent moves out of the mantissa to the left; it is rounded, then
  // cut off. 2^8 and more, and what rounding carries beyond 127, is cut off; NaN becomes 0.
  localparam int unsigned STEPS_OF_WHOLE = 4;
  logic [2:0] negative_q, huge_q, none_q;
  logic [3:0] left_q;
  logic [22:0] mantissa_q;
  logic [7:0] floor_q, byte_q;
  logic half_q, rest_q;
  logic [8:0] whole_q;

  always_ff @(posedge clk_i) begin
    automatic logic [31:0] fixed = {8'b0, 1'b1, mantissa_q} << left_q;
    negative_q <= {negative_q[1:0], product[31]};
    huge_q     <= {huge_q[1:0], product[30:23] > 8'd134};
    none_q     <= {none_q[1:0], product[30:23] < 8'd126 || (product[30:23] == '1 && product[22:0] != '0)};
    left_q     <= 4'(product[30:23] - 8'd126);
    mantissa_q <= product[22:0];
    {floor_q, half_q} <= fixed[31:23];
    rest_q     <= fixed[22:0] != '0;
    whole_q    <= {1'b0, floor_q} + 9'(half_q && (floor_q[0] || rest_q));
    if (none_q[2]) byte_q <= '0;
    else if (negative_q[2]) byte_q <= relu_q ? '0 : huge_q[2] || whole_q > 9'd128 ? 8'h80 : -whole_q[7:0];
    else byte_q <= huge_q[2] || whole_q > 9'd127 ? 8'h7f : whole_q[7:0];
  end

  // What no float bias is added to waits for as long as the others. ReLU lets NaN and -0 pass, as torch.
  logic [32*STEPS_OF_ADD-1:0] results_q;
  logic [8*(STEPS_OF_ADD-STEPS_OF_WHOLE)-1:0] bytes_q;
  wire [31:0] result = int8_q ? 32'(bytes_q[8*(STEPS_OF_ADD-STEPS_OF_WHOLE)-1-:8])
      : float32_q && with_bias_q ? total : results_q[32*STEPS_OF_ADD-1-:32];
  wire passes = float32_q && (result[30:0] > {8'hff, 23'b0} || result[30:0] == '0);

  always_ff @(posedge clk_i) begin
    results_q <= {results_q[32*(STEPS_OF_ADD-1)-1:0], float32_q ? product : waited};
    bytes_q   <= {bytes_q[8*(STEPS_OF_ADD-STEPS_OF_WHOLE-1)-1:0], byte_q};
    if (valid_q[STEPS-1]) element_o <= relu_q && result[31] && !passes ? '0 : result;
  end

`ifndef SYNTHESIS
  assert property (@(posedge clk_i) valid_q[STEPS-1] && relu_q && !int8_q && !float32_q |=> !element_o[31])
  else $error("gemm_lane: %h has passed ReLU", element_o);
`endif

endmodule

`default_nettype wire
