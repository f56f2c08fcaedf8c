// normalise: shifts left until the top bit is set, but by no more than limit_i. No clock.
//
// Each step shifts by a power of two if as many bits at the top are zero and the limit allows it;
// from the largest step down this gives min(leading zeros, limit). Steps below 2^LOW are left to
// another one, a register later: limit_o is what they may still shift by.
`default_nettype none

module normalise #(
    parameter int unsigned WIDTH      = 28,
    parameter int unsigned SHIFT_BITS = $clog2(WIDTH),
    parameter int unsigned LOW        = 0
) (
    input  wire logic [WIDTH-1:0]      value_i,
    input  wire logic [SHIFT_BITS-1:0] limit_i,
    output logic [WIDTH-1:0]           value_o,
    output logic [SHIFT_BITS-1:0]      shift_o,
    output logic [SHIFT_BITS-1:0]      limit_o
);

  // Stage k + 1 is the value before the step of 2^k.
  logic [WIDTH-1:0] value[LOW:SHIFT_BITS];
  logic [SHIFT_BITS-1:0] limit[LOW:SHIFT_BITS];

  assign value[SHIFT_BITS] = value_i;
  assign limit[SHIFT_BITS] = limit_i;

  for (genvar k = LOW; k < SHIFT_BITS; ++k) begin : gen_step
    wire take = value[k+1][WIDTH-1-:2**k] == '0 && limit[k+1] >= SHIFT_BITS'(2 ** k);
    assign value[k]   = take ? value[k+1] << 2 ** k : value[k+1];
    assign limit[k]   = take ? limit[k+1] - SHIFT_BITS'(2 ** k) : limit[k+1];
    assign shift_o[k] = take;
  end

  for (genvar k = 0; k < LOW; ++k) begin : gen_left
    assign shift_o[k] = 1'b0;
  end

  assign value_o = value[LOW];
  assign limit_o = limit[LOW];

`ifndef SYNTHESIS
  initial assert (2 ** (SHIFT_BITS - 1) <= WIDTH)
  else $fatal(1, "normalise: a step of %0d in %0d bits", 2 ** (SHIFT_BITS - 1), WIDTH);
`endif

endmodule

`default_nettype wire
