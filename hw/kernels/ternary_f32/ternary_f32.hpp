// ternary_f32: y = f(a, b, c) for every element, f by opcode.
//
// Made from pynq_torch/kernels/tables/pointwise.py. Change that, then `python -m pynq_torch kernels generate`.
#pragma once
#include <cstdint>

namespace ternary_f32_config {
using Type = float;
using Scalar = float;

// Values of op; of any other the result is not defined.
enum Function {
    ADDCMUL = 0,
    ADDCDIV = 1,
    WHERE = 2,
    LERP = 3,
    CLAMP = 4,
};

// Bits of scalars: which operands are in a register and not in memory.
enum Scalars { A_SCALAR = 1, B_SCALAR = 2, C_SCALAR = 4, C_MASK = 8 };
}  // namespace ternary_f32_config

// n0 to n3: sizes of four nested loops, n3 innermost. a0 to a3: how far a moves in each, in
// elements; so for the other operands. y: dense in the order of the loops; may not overlap an operand.
// p and q: parameters of f.
// With C_MASK, c is read from mask: bytes, of which any but 0 is true.
void ternary_f32(const float* a, const float* b, const float* c, const uint8_t* mask, float* y,
                 int op, int scalars, float sa, float sb, float sc, float p, float q,
                 int n0, int n1, int n2, int n3,
                 int a0, int a1, int a2, int a3,
                 int b0, int b1, int b2, int b3,
                 int c0, int c1, int c2, int c3);
