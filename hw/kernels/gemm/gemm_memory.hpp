// Moving tiles between DDR and the buffers of gemm_core.hpp, one burst a row.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gemm_core {
// A tile of c: rows x cols from (row0, col0) on.
struct Tile { int row0, col0, rows, cols; };

inline int at_most(int value, int limit) { return value < limit ? value : limit; }

// Copy rows x cols of a matrix into the tile and fill up to padded_rows x padded_cols with zeros.
template <int ROWS, int COLS>
void load(const int8_t* matrix, int8_t tile[ROWS][COLS], size_t first, int stride,
          int rows, int cols, int padded_rows, int padded_cols) {
load_rows:
    for (int i = 0; i < padded_rows; ++i) {
        const size_t start = first + static_cast<size_t>(i) * stride;
        const int valid = i < rows ? cols : 0;
    load_burst:
        for (int j = 0; j < valid; ++j) {
#pragma HLS PIPELINE II=1
            tile[i][j] = matrix[start + j];
        }
    load_zeros:
        for (int j = valid; j < padded_cols; ++j) {
#pragma HLS PIPELINE II=1
            tile[i][j] = 0;
        }
    }
}

// Write the valid part of a tile of c.
template <int ROWS, int COLS>
void store(const int32_t tile[ROWS][COLS], int32_t* c, Tile at, int ldc) {
store_rows:
    for (int i = 0; i < at.rows; ++i) {
        const size_t start = static_cast<size_t>(at.row0 + i) * ldc + at.col0;
    store_burst:
        for (int j = 0; j < at.cols; ++j) {
#pragma HLS PIPELINE II=1
            c[start + j] = tile[i][j];
        }
    }
}
}  // namespace gemm_core
