// Moving a and b from DDR into the buffers and registers of gemm_core.hpp, one burst a row.
//
// DDR answers a burst some 50 cycles after it was asked for, which is as long as a row takes to arrive.
// So rows are asked for AHEAD of their turn: hls::burst_maxi takes the request now and gives the data
// later (UG1399, "Using Manual Burst"). One loop over all elements of a tile never stops between rows.
#pragma once
#include <cstddef>
#include <cstdint>

#include "hls_burst_maxi.h"

namespace gemm_core {
constexpr int AHEAD = 8;  // rows; as many bursts as a port may have under way

// A tile of c: rows x cols from (row0, col0) on.
struct Tile { int row0, col0, rows, cols; };

inline int at_most(int value, int limit) { return value < limit ? value : limit; }

// Copy rows x cols of a matrix into the tile and fill up to padded_rows x padded_cols with zeros.
template <int ROWS, int COLS>
void load(hls::burst_maxi<int8_t> matrix, int8_t tile[ROWS][COLS], size_t first, int stride,
          int rows, int cols, int padded_rows, int padded_cols) {
    const int bursts = cols > 0 ? rows : 0;
load_ahead:
    for (int i = 0; i < at_most(bursts, AHEAD); ++i) {
#pragma HLS LOOP_TRIPCOUNT min=0 max=AHEAD
        matrix.read_request(first + static_cast<size_t>(i) * stride, cols);
    }
    int i = 0, j = 0;
load_loop:
    for (int t = 0; t < padded_rows * padded_cols; ++t) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=8192
        if (j == 0 && i + AHEAD < bursts) {
            matrix.read_request(first + static_cast<size_t>(i + AHEAD) * stride, cols);
        }
        tile[i][j] = i < rows && j < cols ? matrix.read() : 0;
        if (++j == padded_cols) {
            j = 0;
            ++i;
        }
    }
}

// Step s of a tile takes k in s * TILE_K +: depth, filled up with zeros to whole dot products.
template <typename S>
int depth_of(int s, int k) { return at_most(k - s * S::TILE_K, S::TILE_K); }
template <typename S>
int padded_depth_of(int s, int k) {
    const int depth = depth_of<S>(s, k);
    return depth > 0 ? (depth + S::DEPTH - 1) / S::DEPTH * S::DEPTH : S::DEPTH;
}

template <typename S>
void load_a(hls::burst_maxi<int8_t> a, int8_t tile[S::TILE_M][S::TILE_K], Tile at, int s, int k, int lda) {
    const size_t first = static_cast<size_t>(at.row0) * lda + s * S::TILE_K;
    load<S::TILE_M, S::TILE_K>(a, tile, first, lda, at.rows, depth_of<S>(s, k), at.rows, padded_depth_of<S>(s, k));
}

template <typename S>
void load_b(hls::burst_maxi<int8_t> b, int8_t tile[S::TILE_K][S::TILE_N], Tile at, int s, int k, int ldb) {
    const size_t first = static_cast<size_t>(s) * S::TILE_K * ldb + at.col0;
    load<S::TILE_K, S::TILE_N>(b, tile, first, ldb, depth_of<S>(s, k), at.cols, padded_depth_of<S>(s, k), at.cols);
}

// Copy the block of b that stays the same while the rows pass.
template <typename S>
void hold(const int8_t b[S::TILE_K][S::TILE_N], int k, int j, int8_t held[S::DEPTH][S::WIDTH]) {
#pragma HLS INLINE
hold_loop:
    for (int d = 0; d < S::DEPTH; ++d) {
#pragma HLS UNROLL
        for (int w = 0; w < S::WIDTH; ++w) held[d][w] = b[k + d][j + w];
    }
}
}  // namespace gemm_core
