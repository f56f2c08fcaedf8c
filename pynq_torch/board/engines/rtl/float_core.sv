// float_core: what a Xilinx Floating-Point Operator 7.1 (PG060) does, for simulation only.
//
// One result a cycle, LATENCY cycles after its operands; the pipeline stands still while aclken is
// low. LATENCY 0 is combinational. A float has 16, 32 or 64 bits. As in the core, subnormal operands
// and results are zeros of their sign, a result is rounded once, to nearest even, and every NaN is
// the quiet NaN with sign 0. A result is too small if it is below the least normal number once it is
// rounded to the format's precision.
//
// Arithmetic is that of the PC's double: a half or a single fits into it exactly, and its 53 bits
// are more than twice those of a single, so that +, -, *, / and the square root rounded again are
// rounded correctly. Significands are multiplied and divided apart from their exponents, so that
// nothing becomes subnormal or overflows on the way.
`default_nettype none

module float_core #(
    parameter string OPERATOR = "add",
    parameter int A_WIDTH = 32,  // of an operand that is a float
    parameter int R_WIDTH = 32,  // of a result that is one
    parameter int I_WIDTH = 32,  // of an integer
    parameter bit IS_SIGNED = 1,  // the integer
    parameter int LATENCY = 0
) (
    input  wire logic        aclk,
    input  wire logic        aclken,
    input  wire logic        valid,
    input  wire logic [63:0] a,
    input  wire logic [63:0] b,
    input  wire logic [63:0] c,
    input  wire logic [ 7:0] operation,
    output logic             result_valid,
    output logic      [63:0] result
);

  localparam logic [63:0] NAN = 64'h7ff8_0000_0000_0000;
  localparam int SUM_WIDTH = 256;

  function automatic int exponent_bits(input int width);
    return width == 16 ? 5 : width == 32 ? 8 : 11;
  endfunction

  // ---- between formats -------------------------------------------------------------------------

  // The bits of a double with the value of an operand.
  function automatic logic [63:0] widened(input logic [63:0] x);
    localparam int E = exponent_bits(A_WIDTH), F = A_WIDTH - 1 - E;
    logic sign = x[A_WIDTH-1];
    logic [10:0] exponent = 11'(x[A_WIDTH-2:F]);
    logic [51:0] fraction = 52'(x[F-1:0]) << (52 - F);
    if (exponent == 11'(2 ** E - 1)) return fraction == 0 ? {sign, 11'h7ff, 52'd0} : NAN;
    if (exponent == 0) return {sign, 63'd0};
    return {sign, 11'(int'(exponent) - (2 ** (E - 1) - 1) + 1023), fraction};
  endfunction

  // magnitude / 2^63 * 2^exponent, and a little more if sticky, in the result's format. Bit 63 of
  // the magnitude is set.
  function automatic logic [63:0] packed_float(
      input logic sign, input int exponent, input logic [63:0] magnitude, input logic sticky);
    localparam int E = exponent_bits(R_WIDTH), F = R_WIDTH - 1 - E, BIAS = 2 ** (E - 1) - 1;
    logic [63:0] kept = magnitude >> (63 - F);
    logic [63:0] rest = magnitude << (F + 1);
    logic [63:0] head = 64'(sign) << (R_WIDTH - 1);
    int e = exponent;
    if (rest[63] && (rest[62:0] != 0 || sticky || kept[0])) kept += 1;
    if (kept[F+1]) begin
      e += 1;
      kept >>= 1;
    end
    if (e > BIAS) return head | (64'(2 ** E - 1) << F);
    if (e < 1 - BIAS) return head;
    kept[F] = 0;
    return head | (64'(e + BIAS) << F) | kept;
  endfunction

  // A double times 2^scale.
  function automatic logic [63:0] narrowed(input real value, input int scale);
    localparam int E = exponent_bits(R_WIDTH), F = R_WIDTH - 1 - E;
    logic [63:0] x = $realtobits(value);
    logic [63:0] head = 64'(x[63]) << (R_WIDTH - 1);
    if (x[62:0] > 63'h7ff0_0000_0000_0000) return 64'(2 ** (E + 1) - 1) << (F - 1);
    if (x[62:52] == 11'h7ff) return head | (64'(2 ** E - 1) << F);
    if (x[62:52] == 0) return head;
    return packed_float(x[63], int'(x[62:52]) - 1023 + scale, {1'b1, x[51:0], 11'd0}, 1'b0);
  endfunction

  function automatic logic is_special(input logic [63:0] x);  // 0, infinity, NaN: no significand
    return x[62:52] == 0 || x[62:52] == 11'h7ff;
  endfunction

  function automatic int exponent_of(input logic [63:0] x);
    return int'(x[62:52]) - 1023;
  endfunction

  function automatic real significand(input logic [63:0] x, input logic odd);  // in 1..2, or 2..4
    return $bitstoreal({x[63], odd ? 11'd1024 : 11'd1023, x[51:0]});
  endfunction

  // ---- operators -------------------------------------------------------------------------------

  function automatic logic [63:0] product(input logic [63:0] x, input logic [63:0] y);
    if (is_special(x) || is_special(y)) return narrowed($bitstoreal(x) * $bitstoreal(y), 0);
    return narrowed(significand(x, 0) * significand(y, 0), exponent_of(x) + exponent_of(y));
  endfunction

  function automatic logic [63:0] quotient(input logic [63:0] x, input logic [63:0] y);
    if (is_special(x) || is_special(y)) return narrowed($bitstoreal(x) / $bitstoreal(y), 0);
    return narrowed(significand(x, 0) / significand(y, 0), exponent_of(x) - exponent_of(y));
  endfunction

  function automatic logic [63:0] root(input logic [63:0] x, input logic reciprocal);
    int e = exponent_of(x);
    real value = $sqrt(is_special(x) || x[63] ? $bitstoreal(x) : significand(x, e[0]));
    if (reciprocal) value = 1.0 / value;
    if (is_special(x) || x[63]) return narrowed(value, 0);
    e = (e - int'(e[0])) / 2;
    return narrowed(value, reciprocal ? -e : e);
  endfunction

  // x * y + z, rounded once: the sum is exact in 256 bits. What lies far below counts as one unit
  // of the lowest place, which rounds alike.
  function automatic logic [63:0] multiplied_added(
      input logic [63:0] x, input logic [63:0] y, input logic [63:0] z);
    logic sign = x[63] ^ y[63];
    logic [SUM_WIDTH-1:0] p = SUM_WIDTH'({1'b1, x[51:0]}) * SUM_WIDTH'({1'b1, y[51:0]});
    logic [SUM_WIDTH-1:0] s = SUM_WIDTH'({1'b1, z[51:0]});
    int unit = exponent_of(x) + exponent_of(y) - 104;  // the exponent of bit 0
    int apart = exponent_of(z) - 52 - unit;
    int top;
    if (x[62:52] == 11'h7ff || y[62:52] == 11'h7ff)
      return narrowed($bitstoreal(x) * $bitstoreal(y) + $bitstoreal(z), 0);
    if (z[62:52] == 11'h7ff) return narrowed($bitstoreal(z), 0);
    if (is_special(x) || is_special(y))
      return narrowed($bitstoreal({sign, 63'd0}) + $bitstoreal(z), 0);
    if (z[62:52] == 0) s = 0;
    else if (apart > 160) begin
      p = 1;
      s <<= 160;
      unit += apart - 160;
    end else if (apart >= 0) s <<= apart;
    else if (apart >= -120) begin
      p <<= -apart;
      unit += apart;
    end else begin
      p <<= 120;
      s = 1;
      unit -= 120;
    end
    if (sign == z[63]) s += p;
    else if (s > p) begin
      s -= p;
      sign = z[63];
    end else s = p - s;
    if (s == 0) return 0;
    top = $clog2(s + 1) - 1;
    s <<= SUM_WIDTH - 1 - top;
    return packed_float(sign, unit + top, s[SUM_WIDTH-1-:64], s[SUM_WIDTH-65:0] != 0);
  endfunction

  // Any of greater, equal, less: bits 5 to 3 of the operation; bit 2 is set.
  function automatic logic [63:0] compared(
      input logic [63:0] x, input logic [63:0] y, input logic [3:0] any);
    real p = $bitstoreal(x), q = $bitstoreal(y);
    logic unordered = x[62:0] > 63'h7ff0_0000_0000_0000 || y[62:0] > 63'h7ff0_0000_0000_0000;
    if (unordered) return 64'(any == 4'b0001 || any == 4'b1011);  // unordered, not equal
    return 64'(any[3] && p > q || any[2] && p == q || any[1] && p < q);
  endfunction

  function automatic logic [63:0] from_integer(input logic [63:0] x);
    logic sign = IS_SIGNED && x[I_WIDTH-1];
    logic [63:0] magnitude = x << (64 - I_WIDTH);
    int e = I_WIDTH - 1;
    if (sign) magnitude = -magnitude;
    if (magnitude == 0) return 0;
    for (int step = 32; step > 0; step >>= 1)
      if (magnitude >> (64 - step) == 0) begin
        magnitude <<= step;
        e -= step;
      end
    return packed_float(sign, e, magnitude, 1'b0);
  endfunction

  // Towards zero, as C++ converts; what does not fit is the nearest integer that does, NaN the least.
  function automatic logic [63:0] to_integer(input logic [63:0] x);
    localparam logic [63:0] LEAST = IS_SIGNED ? 64'd1 << (I_WIDTH - 1) : 64'd0;
    localparam logic [63:0] MOST = ~LEAST & ('1 >> (64 - I_WIDTH));
    int e = exponent_of(x);
    logic [63:0] magnitude = {1'b1, x[51:0], 11'd0};
    if (x[62:0] > 63'h7ff0_0000_0000_0000) return LEAST;
    if (e < 0) return 0;
    magnitude = e > 63 ? '1 : magnitude >> (63 - e);
    if (!x[63]) return magnitude > MOST ? MOST : magnitude;
    return e > 63 || magnitude >= LEAST ? LEAST : -magnitude & ('1 >> (64 - I_WIDTH));
  endfunction

  function automatic logic [63:0] computed(
      input logic [63:0] first, input logic [63:0] second, input logic [63:0] third,
      input logic [7:0] op);
    logic [63:0] x = widened(first), y = widened(second), z = widened(third);
    case (OPERATOR)
      "add": return narrowed($bitstoreal(x) + $bitstoreal(y), 0);
      "sub": return narrowed($bitstoreal(x) - $bitstoreal(y), 0);
      "addsub": return narrowed($bitstoreal(x) + $bitstoreal({y[63] ^ op[0], y[62:0]}), 0);
      "mul": return product(x, y);
      "div": return quotient(x, y);
      "recip": return quotient($realtobits(1.0), x);
      "fma": return multiplied_added(x, y, {z[63] ^ op[0], z[62:0]});
      "madd":
      return narrowed($bitstoreal(widened(product(x, y))) + $bitstoreal({z[63] ^ op[0], z[62:0]}),
                      0);
      "sqrt": return root(x, 0);
      "rsqrt": return root(x, 1);
      "exp": return narrowed($exp($bitstoreal(x)), 0);
      "log": return narrowed($ln($bitstoreal(x)), 0);
      "cmp": return compared(x, y, op[5:2]);
      "float": return narrowed($bitstoreal(x), 0);
      "to_integer": return to_integer(x);
      default: return from_integer(first);
    endcase
  endfunction

  if (LATENCY == 0) begin : g_combinational
    assign result_valid = valid;
    always_comb result = computed(a, b, c, operation);
  end else begin : g_pipeline
    logic [63:0] results[LATENCY];
    logic [LATENCY-1:0] valids;
    initial begin  // a register of an FPGA begins as 0
      results = '{default: '0};
      valids = '0;
    end
    assign result_valid = valids[LATENCY-1];
    assign result = results[LATENCY-1];
    always_ff @(posedge aclk)
      if (aclken) begin
        valids <= LATENCY'({valids, valid});
        results[0] <= computed(a, b, c, operation);
        for (int i = 1; i < LATENCY; i++) results[i] <= results[i-1];
      end
  end

endmodule

`default_nettype wire
