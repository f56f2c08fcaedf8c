// gemm: c = a * b, int8 x int8 -> int32, any M, N, K and row strides; 256 MAC a cycle on 128 DSPs.
//
// | parameter   | value | why                                                               |
// |-------------|-------|-------------------------------------------------------------------|
// | DEPTH       | 16    | 16 x 16 MAC a cycle; two products a DSP48E1, 128 of the 220       |
// | WIDTH       | 16    |                                                                   |
// | TILE_M/N    | 256   | a byte a cycle on each port feeds 256 MAC a cycle; 64 BRAM36 of c |
// | TILE_K      | 64    | 16 BRAM36 of a, double-buffered; b is small enough for LUTRAM     |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed        |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS             |
#pragma once
#include <cstdint>

namespace gemm_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 1 << 17;  // elements behind each pointer in co-simulation

struct Shape {
    static constexpr int DEPTH = 16, WIDTH = 16, TILE_M = 256, TILE_N = 256, TILE_K = 64;
};
}  // namespace gemm_config

// a: m rows of k, lda apart; b: k rows of n, ldb apart; c: m rows of n, ldc apart (in elements).
// Strides are at least the row length. c may not overlap a or b. k = 0 stores zeros.
void gemm(const int8_t* a, const int8_t* b, int32_t* c, int m, int n, int k, int lda, int ldb, int ldc);
