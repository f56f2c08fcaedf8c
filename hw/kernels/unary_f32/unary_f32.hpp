// unary_f32: y = f(x) for every element, f by opcode.
//
// Made from pynq_torch/kernels/tables/pointwise.py. Change that, then `python -m pynq_torch kernels generate`.
#pragma once
#include <cstdint>

namespace unary_f32_config {
using Type = float;
using Scalar = float;

// Values of op; of any other the result is not defined.
enum Function {
    ABS = 0,
    NEG = 1,
    RELU = 2,
    SIGMOID = 3,
    TANH = 4,
    EXP = 5,
    LOG = 6,
    SQRT = 7,
    RSQRT = 8,
    RECIPROCAL = 9,
    FLOOR = 10,
    CEIL = 11,
    ROUND = 12,
    SIGN = 13,
    CLAMP = 14,
    THRESHOLD = 15,
    GELU = 16,
    GELU_TANH = 17,
    SILU = 18,
    HARDTANH = 19,
    LEAKY_RELU = 20,
    SQUARE = 21,
    INVERSE_SQUARE = 22,
};
}  // namespace unary_f32_config

// n0 to n3: sizes of four nested loops, n3 innermost. x0 to x3: how far x moves in each, in
// elements. y: dense in the order of the loops; may not overlap an operand.
// p and q: parameters of f.
void unary_f32(const float* x, float* y,
               int op, float p, float q,
               int n0, int n1, int n2, int n3,
               int x0, int x1, int x2, int x3);
