// normalise_proof: for every value and limit, `normalise` shifts by the smaller of the limit and the
// number of zeros above the highest one. No state: one step is all there is.
`default_nettype none

module normalise_proof #(
    parameter int unsigned WIDTH      = 28,
    parameter int unsigned SHIFT_BITS = $clog2(WIDTH)
) (
    input wire logic [WIDTH-1:0]      value_i,
    input wire logic [SHIFT_BITS-1:0] limit_i
);

  logic [WIDTH-1:0] value_o;
  logic [SHIFT_BITS-1:0] shift_o;

  normalise #(
      .WIDTH(WIDTH),
      .SHIFT_BITS(SHIFT_BITS)
  ) dut (
      .*
  );

  // A zero has no highest one: any shift up to the limit is right, the result is zero.
  logic [SHIFT_BITS:0] zeros;

  always_comb begin
    zeros = (SHIFT_BITS + 1)'(WIDTH);
    for (int unsigned i = 0; i < WIDTH; ++i) begin
      if (value_i[i]) zeros = (SHIFT_BITS + 1)'(WIDTH - 1 - i);
    end
  end

  wire within_limit = shift_o <= limit_i;
  wire far_enough = value_i == '0 || value_o[WIDTH-1] || shift_o == limit_i;
  wire no_bit_lost = value_i == '0 || {1'b0, shift_o} <= zeros;
  wire is_a_shift = value_o == value_i << shift_o;

  always_comb begin
    assert (within_limit);
    assert (far_enough);
    assert (no_bit_lost);
    assert (is_a_shift);
  end

endmodule

`default_nettype wire
