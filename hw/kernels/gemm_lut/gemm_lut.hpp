// gemm_lut: the same function as gemm without a DSP; 64 MAC a cycle in LUTs, to work beside gemm.
//
// | parameter   | value | why                                                               |
// |-------------|-------|-------------------------------------------------------------------|
// | DEPTH       | 8     | 8 x 8 MAC a cycle; an int8 multiplier takes 55 to 160 LUTs        |
// | WIDTH       | 8     |                                                                   |
// | TILE_M/N    | 128   | twice what 64 MAC a cycle need of the ports; 16 BRAM36 of c       |
// | TILE_K      | 64    | 8 BRAM18 of a, twice; b is small enough for LUTRAM                |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed        |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS             |
#pragma once
#include <cstdint>

namespace gemm_lut_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 1 << 17;  // elements behind each pointer in co-simulation

struct Shape {
    static constexpr int DEPTH = 8, WIDTH = 8, TILE_M = 128, TILE_N = 128, TILE_K = 64;
};
}  // namespace gemm_lut_config

// Arguments as in gemm.hpp.
void gemm_lut(const int8_t* a, const int8_t* b, int32_t* c, int m, int n, int k, int lda, int ldb, int ldc);
