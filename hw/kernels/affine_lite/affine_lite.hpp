// affine_lite: y = gain * x + offset, the vectors in registers of the AXI4-Lite slave.
//
// | parameter | value | why                                                                     |
// |-----------|-------|-------------------------------------------------------------------------|
// | CAPACITY  | 64    | 256 bytes of the address map for each vector: the host writes each word |
#pragma once
#include "../../include/affine.hpp"

namespace affine_lite_config {
constexpr int CAPACITY = 64;
static_assert((CAPACITY & (CAPACITY - 1)) == 0, "a window in the address map is a power of two");
}  // namespace affine_lite_config

// The first n elements of y are written, at most CAPACITY. n <= 0 does nothing.
void affine_lite(const float x[affine_lite_config::CAPACITY], float y[affine_lite_config::CAPACITY], float gain,
                 float offset, int n);
