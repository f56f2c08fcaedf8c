// binary_i8: y = f(a, b) for every element, f by opcode.
//
// Made from pynq_torch/kernels/tables/pointwise.py. Change that, then `python -m pynq_torch kernels generate`.
#pragma once
#include <cstdint>

namespace binary_i8_config {
using Type = int8_t;
using Scalar = int;

// Values of op; of any other the result is not defined.
enum Function {
    ADD = 0,
    SUB = 1,
    MUL = 2,
    DIV_TRUNC = 4,
    DIV_FLOOR = 5,
    REMAINDER = 6,
    MAXIMUM = 7,
    MINIMUM = 8,
    POW = 9,
    ADD_SCALED = 10,
};

// Bits of scalars: which operands are in a register and not in memory.
enum Scalars { A_SCALAR = 1, B_SCALAR = 2 };
}  // namespace binary_i8_config

// n0 to n3: sizes of four nested loops, n3 innermost. a0 to a3: how far a moves in each, in
// elements; so for the other operands. y: dense in the order of the loops; may not overlap an operand.
// p and q: parameters of f.
void binary_i8(const int8_t* a, const int8_t* b, int8_t* y,
               int op, int scalars, int s, int p, int q,
               int n0, int n1, int n2, int n3,
               int a0, int a1, int a2, int a3,
               int b0, int b1, int b2, int b3);
