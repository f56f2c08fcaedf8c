// gemm_product: the products of gemm_array, of a row of DSP48E1 and of one of LUTs, each beside what int8
// times int8 is.
`default_nettype none

module gemm_product #(
    parameter int unsigned COLS = 32
) (
    input  wire logic              clk_i,
    input  wire logic [8*COLS-1:0] b_i,
    input  wire logic [7:0]        a_i,
    output logic                   arrived_o,  // both rows multiply b_i
    output logic [3:0]             equal_o     // of DSP48E1 the low products and the high ones, of LUTs both
);

  localparam int unsigned WORDS = COLS / 4;

  gemm_array #(
      .ROWS(2),
      .COLS(COLS),
      .DSP_ROWS(1),
      .LANES(COLS / 2)
  ) dut (
      .clk_i,
      .rst_ni(1'b1),
      .b_i,
      .a_i({a_i, a_i}),
      .first_i(2'b11),
      .last_i(1'b0),
      .drain_o(),
      .valid_o(),
      .row_o(),
      .group_o(),
      .sums_o()
  );

  // The two halves of a product of 32 bits, each with what is added to it in its sum.
  always_comb begin
    arrived_o = 1'b1;
    equal_o   = '1;
    /*verilator unroll_disable*/
    for (int unsigned w = 0; w < WORDS; ++w) begin
      if (dut.b_q[0][w] != b_i[32*w+:32] || dut.b_q[1][w] != b_i[32*w+:32]) arrived_o = 1'b0;
      for (int unsigned p = 0; p < 2; ++p) begin
        automatic logic [31:0] packed_product = dut.products_d[p][0][w];
        automatic logic [31:0] lut_product = dut.products_d[p][1][w];
        automatic logic [15:0] low = 16'(signed'(b_i[32*w+16*p+:8])) * 16'(signed'(a_i));
        automatic logic [15:0] high = 16'(signed'(b_i[32*w+16*p+8+:8])) * 16'(signed'(a_i));
        if (packed_product[15:0] != low) equal_o[0] = 1'b0;
        if (packed_product[31:16] + 16'(packed_product[15]) != high) equal_o[1] = 1'b0;
        if (lut_product[15:0] + 16'(dut.low_one_d[1]) != low) equal_o[2] = 1'b0;
        if (lut_product[31:16] + 16'(dut.low_one_d[1]) != high) equal_o[3] = 1'b0;
      end
    end
  end

endmodule

`default_nettype wire
