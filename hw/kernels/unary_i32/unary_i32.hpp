// unary_i32: y = f(x) for every element, f by opcode.
//
// Made from pynq_torch/kernels/tables/pointwise.py. Change that, then `python -m pynq_torch kernels generate`.
#pragma once
#include <cstdint>

namespace unary_i32_config {
using Type = int;
using Scalar = int;

// Values of op; of any other the result is not defined.
enum Function {
    ABS = 0,
    NEG = 1,
    RELU = 2,
    SIGN = 13,
    CLAMP = 14,
    THRESHOLD = 15,
    HARDTANH = 19,
    SQUARE = 21,
};
}  // namespace unary_i32_config

// n0 to n3: sizes of four nested loops, n3 innermost. x0 to x3: how far x moves in each, in
// elements. y: dense in the order of the loops; may not overlap an operand.
// p and q: parameters of f.
void unary_i32(const int* x, int* y,
               int op, int p, int q,
               int n0, int n1, int n2, int n3,
               int x0, int x1, int x2, int x3);
