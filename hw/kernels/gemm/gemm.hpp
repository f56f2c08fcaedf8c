// gemm: c = a * b, int8 x int8 -> int32, any M, N, K and row strides; 256 MAC a cycle on 128 DSPs.
//
// | parameter   | value | why                                                               |
// |-------------|-------|-------------------------------------------------------------------|
// | DEPTH       | 16    | 16 x 16 MAC a cycle; two products a DSP48E1, 128 of the 220       |
// | WIDTH       | 16    |                                                                   |
// | TILE_M/N    | 256   | a byte a cycle on each port feeds 256 MAC a cycle; 64 BRAM36 of c |
// | TILE_K      | 32    | 16 BRAM36 of a, double-buffered; b is small enough for LUTRAM     |
// | HOLD        | true  | 2048 registers save reading 256 LUTRAMs in every cycle            |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed        |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS             |
// | PORT_BITS   | 64    | as wide as an HP port; the RTL in rtl/ uses all of it             |
#pragma once
#include <cstdint>

#include "hls_burst_maxi.h"

namespace gemm_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int PORT_BITS = 64;
constexpr int COSIM_DEPTH = 1 << 17;    // elements behind a, b and c in co-simulation
constexpr int COSIM_COLUMNS = 1 << 10;  // behind bias and scale

struct Shape {
    static constexpr int DEPTH = 16, WIDTH = 16, TILE_M = 256, TILE_N = 256, TILE_K = 32;
    static constexpr bool HOLD = true;
};
}  // namespace gemm_config

// a: m rows of k, lda apart; b: k rows of n, ldb apart; c: m rows of n, ldc apart (in elements).
// Strides are at least the row length. c may not overlap what is read. The sums of k = 0 are zeros.
//
// bias, scale: a value for each column of c. mode says what is done with them and what c holds; the
// table is in gemm_epilogue.hpp. mode = 0 stores the sums and reads neither. With int8 in c, ldc counts
// bytes and is a multiple of 4 that leaves room for whole words; c starts on a word.
//
// The PL's float cores take subnormal numbers for zero (PG060): scales, float biases and results below
// 1.2e-38 come out as zero there, and not in C++.
void gemm(hls::burst_maxi<int8_t> a, hls::burst_maxi<int8_t> b, hls::burst_maxi<int32_t> c, int m, int n, int k,
          int lda, int ldb, int ldc, hls::burst_maxi<int32_t> bias, hls::burst_maxi<float> scale, int mode);
