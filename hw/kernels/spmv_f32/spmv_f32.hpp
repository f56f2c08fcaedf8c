// spmv_f32: y = A x in float32, A in compressed rows (CSR).
//
// | parameter   | value | why                                                              |
// |-------------|-------|------------------------------------------------------------------|
// | VECTOR      | 16384 | elements of x on the chip: 64 KB, 32 BRAM18 of 280               |
// | LANES       | 8     | partial sums: more than the 5 cycles of an addition              |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed       |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS            |
#pragma once
#include "../../include/sparse.hpp"

namespace spmv_f32_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 1 << 16;  // words behind each pointer in co-simulation

struct Table {
    static constexpr int VECTOR = 16384, LANES = 8;
};

static_assert((Table::LANES & (Table::LANES - 1)) == 0, "the partial sums are folded in halves");
}  // namespace spmv_f32_config

// crow: rows + 1 indices, col and values: crow[rows] each; not checked. wide: words of an index, 1 or 2.
// x: `columns` elements, step_x words apart; y: `rows`, step_y apart.
// A row without entries gives 0; entries of the same place are added. rows <= 0 does nothing.
void spmv_f32(const int* crow, const int* col, const float* values, const float* x, float* y,
              int rows, int columns, int wide, int step_x, int step_y);
