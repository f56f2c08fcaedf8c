// spmm_f32: out = A B in float32, A in compressed rows (CSR).
//
// | parameter   | value | why                                                              |
// |-------------|-------|------------------------------------------------------------------|
// | TILE        | 256   | columns summed side by side: 16 bursts of a row of B      |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed       |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS            |
#pragma once
#include "../../include/sparse.hpp"

namespace spmm_f32_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 1 << 16;  // words behind each pointer in co-simulation

struct Table {
    static constexpr int TILE = 256;
};
}  // namespace spmm_f32_config

// crow: rows + 1 indices, col and values: crow[rows] each; not checked. wide: words of an index, 1 or 2.
// b: rows of n elements, row_b words apart, the elements step_b; out: `rows` rows of n, row_out apart.
// A row without entries gives 0; entries of the same place are added. rows <= 0 does nothing.
void spmm_f32(const int* crow, const int* col, const float* values, const float* b, float* out,
              int rows, int n, int wide, int row_b, int step_b, int row_out);
