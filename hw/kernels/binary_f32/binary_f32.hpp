// binary_f32: y = f(a, b) for every element, f by opcode.
//
// Made from pynq_torch/kernels/tables/pointwise.py. Change that, then `python -m pynq_torch kernels generate`.
#pragma once
#include <cstdint>

namespace binary_f32_config {
using Type = float;
using Scalar = float;

// Values of op; of any other the result is not defined.
enum Function {
    ADD = 0,
    SUB = 1,
    MUL = 2,
    DIV = 3,
    DIV_TRUNC = 4,
    DIV_FLOOR = 5,
    REMAINDER = 6,
    MAXIMUM = 7,
    MINIMUM = 8,
    POW = 9,
    ADD_SCALED = 10,
    THRESHOLD_BACKWARD = 11,
    SIGMOID_BACKWARD = 12,
    TANH_BACKWARD = 13,
    LEAKY_RELU_BACKWARD = 14,
    HARDTANH_BACKWARD = 15,
    SILU_BACKWARD = 16,
    GELU_BACKWARD = 17,
    GELU_TANH_BACKWARD = 18,
};

// Bits of scalars: which operands are in a register and not in memory.
enum Scalars { A_SCALAR = 1, B_SCALAR = 2 };
}  // namespace binary_f32_config

// n0 to n3: sizes of four nested loops, n3 innermost. a0 to a3: how far a moves in each, in
// elements; so for the other operands. y: dense in the order of the loops; may not overlap an operand.
// p and q: parameters of f.
void binary_f32(const float* a, const float* b, float* y,
                int op, int scalars, float s, float p, float q,
                int n0, int n1, int n2, int n3,
                int a0, int a1, int a2, int a3,
                int b0, int b1, int b2, int b3);
