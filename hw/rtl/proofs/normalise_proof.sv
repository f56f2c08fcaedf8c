// normalise_proof: for every value and limit, `normalise` shifts by the smaller of the limit and the
// number of zeros above the highest one; so do two that share the steps. No state: one step is all
// there is.
`default_nettype none

module normalise_proof #(
    parameter int unsigned WIDTH      = 28,
    parameter int unsigned SHIFT_BITS = $clog2(WIDTH)
) (
    input wire logic [WIDTH-1:0]      value_i,
    input wire logic [SHIFT_BITS-1:0] limit_i
);

  logic [WIDTH-1:0] value_o;
  logic [SHIFT_BITS-1:0] shift_o, limit_o;

  normalise #(
      .WIDTH(WIDTH),
      .SHIFT_BITS(SHIFT_BITS)
  ) dut (
      .*
  );

  // The steps down to 4, and those of 2 and 1 behind them.
  logic [WIDTH-1:0] near_the_top, in_two;
  logic [SHIFT_BITS-1:0] first_shift, rest;
  logic [1:0] second_shift, nothing;

  normalise #(
      .WIDTH(WIDTH),
      .SHIFT_BITS(SHIFT_BITS),
      .LOW(2)
  ) first (
      .value_i,
      .limit_i,
      .value_o(near_the_top),
      .shift_o(first_shift),
      .limit_o(rest)
  );

  normalise #(
      .WIDTH(WIDTH),
      .SHIFT_BITS(2)
  ) second (
      .value_i(near_the_top),
      .limit_i(rest > SHIFT_BITS'(3) ? 2'd3 : rest[1:0]),
      .value_o(in_two),
      .shift_o(second_shift),
      .limit_o(nothing)
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

  wire same_in_two = in_two == value_o && first_shift + SHIFT_BITS'(second_shift) == shift_o;
  wire left_over = limit_o == limit_i - shift_o;

  always_comb begin
    assert (same_in_two);
    assert (left_over);
    assert (within_limit);
    assert (far_enough);
    assert (no_bit_lost);
    assert (is_a_shift);
  end

endmodule

`default_nettype wire
