// gemm_lut: the same function as gemm without a DSP; 64 MAC a cycle in LUTs, to work beside gemm.
//
// | parameter   | value | why                                                               |
// |-------------|-------|-------------------------------------------------------------------|
// | DEPTH       | 8     | 8 x 8 MAC a cycle; an int8 multiplier takes 55 to 160 LUTs        |
// | WIDTH       | 8     |                                                                   |
// | TILE_M/N    | 128   | twice what 64 MAC a cycle need of the ports; 16 BRAM36 of c       |
// | TILE_K      | 32    | 8 BRAM18 of a, twice; b is small enough for LUTRAM                |
// | HOLD        | false | registers are what the multipliers leave few of                   |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed        |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS             |
#pragma once
#include <cstdint>

#include "hls_burst_maxi.h"

namespace gemm_lut_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 1 << 17;    // elements behind a, b and c in co-simulation
constexpr int COSIM_COLUMNS = 1 << 10;  // behind bias and scale

struct Shape {
    static constexpr int DEPTH = 8, WIDTH = 8, TILE_M = 128, TILE_N = 128, TILE_K = 32;
    static constexpr bool HOLD = false;
};
}  // namespace gemm_lut_config

// Arguments as in gemm.hpp.
void gemm_lut(hls::burst_maxi<int8_t> a, hls::burst_maxi<int8_t> b, hls::burst_maxi<int32_t> c, int m, int n, int k,
              int lda, int ldb, int ldc, hls::burst_maxi<int32_t> bias, hls::burst_maxi<float> scale, int mode);
