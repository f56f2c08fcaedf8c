// The matmul family: c = alpha * (a @ b) + beta * bias, float32, any sizes and strides, batched.
//
// A kernel is a Shape:
//
// | Shape member | meaning                                                                |
// |--------------|------------------------------------------------------------------------|
// | LANES        | products a cycle, neighbouring columns of c; 5 DSPs each               |
// | TILE_M/N     | rows and columns of c kept on chip while K passes by                   |
// | TILE_K       | columns of a (rows of b) in one pair of buffers                        |
//
// A product and its sum are rounded apart. The sums of an element are taken in order of k, starting
// with zero, so that it is off by at most K * 2^-24 * (|a| @ |b|), to first order, as any float sum.
#pragma once
#include <cstddef>
#include <cstdint>

namespace matmul {
enum Mode { BIAS = 4, RELU = 8 };  // the bits that gemm uses
constexpr int MIN_SUMS = 8;        // a sum is met again after as many cycles: the adder's depth

struct Size { int batch, m, n, k; };
// In elements, from one matrix, row and column to the next; 0 repeats.
struct Stride { int matrix, row, column; };
struct Tile { int batch, row0, col0, rows, cols; };

inline int at_most(int value, int limit) { return value < limit ? value : limit; }
// One multiplier takes the three products in turn: a place is asked for once a tile, or a row of results.
inline int64_t place(Stride s, int matrix, int row, int column) {
#pragma HLS INLINE off
#pragma HLS ALLOCATION operation instances=mul limit=1
    return static_cast<int64_t>(matrix) * s.matrix + static_cast<int64_t>(row) * s.row +
           static_cast<int64_t>(column) * s.column;
}

// A tile with too few sums to hide the adder is computed with rows of zeros below it.
template <typename S>
int padded_rows(Tile at) {
    const int chunks = (at.cols + S::LANES - 1) / S::LANES;
    const int least = (MIN_SUMS + chunks - 1) / chunks;
    return at.rows < least ? least : at.rows;
}

// Copy rows x cols from `first` on, whichever way its neighbours lie: a transposed matrix is read
// along its memory as well, in bursts. What pads the tile is zero.
template <int ROWS, int COLS>
void load(const float* first, Stride s, float tile[ROWS][COLS], int rows, int cols, int all_rows, int all_cols) {
clear_rows:
    for (int i = 0; i < all_rows; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=ROWS
    clear_columns:
        for (int j = i < rows ? cols : 0; j < all_cols; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=0 max=COLS
            tile[i][j] = 0.0f;
        }
    }
    const bool down = s.row == 1 && s.column != 1;
    const int64_t outer_step = down ? s.column : s.row, inner_step = down ? s.row : s.column;
    int64_t from = 0;
load_outer:
    for (int o = 0; o < (down ? cols : rows); ++o, from += outer_step) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=ROWS
        if (inner_step == 1) {
        burst_loop:
            for (int i = 0; i < (down ? rows : cols); ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COLS
                tile[down ? i : o][down ? o : i] = first[from + i];
            }
        } else {
            int64_t at = from;
        single_loop:
            for (int i = 0; i < cols; ++i, at += inner_step) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COLS
                tile[o][i] = first[at];
            }
        }
    }
}

// Step t of a tile takes k in t * TILE_K +: depth.
template <typename S>
int depth_of(Size size, int t) { return at_most(size.k - t * S::TILE_K, S::TILE_K); }

template <typename S>
void load_a(const float* a, Stride s, float tile[S::TILE_M][S::TILE_K], Size size, Tile at, int t) {
    const int depth = depth_of<S>(size, t);
    load<S::TILE_M, S::TILE_K>(a + place(s, at.batch, at.row0, t * S::TILE_K), s, tile, at.rows, depth, padded_rows<S>(at), depth);
}

template <typename S>
void load_b(const float* b, Stride s, float tile[S::TILE_K][S::TILE_N], Size size, Tile at, int t) {
    const int depth = depth_of<S>(size, t), columns = (at.cols + S::LANES - 1) / S::LANES * S::LANES;
    load<S::TILE_K, S::TILE_N>(b + place(s, at.batch, t * S::TILE_K, at.col0), s, tile, depth, at.cols, depth, columns);
}

template <typename S>
void multiply(const float a[S::TILE_M][S::TILE_K], const float b[S::TILE_K][S::TILE_N], float c[S::TILE_M][S::TILE_N],
              Size size, Tile at, int t) {
    const int rows = padded_rows<S>(at), depth = depth_of<S>(size, t);
    const bool first = t == 0;
depth_loop:
    for (int k = 0; k < depth; ++k) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE_K
    row_loop:
        for (int i = 0; i < rows; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE_M
        column_loop:
            for (size_t j = 0; j < static_cast<size_t>(at.cols); j += S::LANES) {  // 64 bits let a PC use its lanes
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=32
// A sum comes again with the next k, after all others of the tile: padded_rows makes them MIN_SUMS.
#pragma HLS DEPENDENCE variable=c type=inter direction=RAW distance=MIN_SUMS true
                float sum[S::LANES];
            lane_loop:
                for (int l = 0; l < S::LANES; ++l) {
#pragma HLS UNROLL
                    sum[l] = (first && k == 0 ? 0.0f : c[i][j + l]) + a[i][k] * b[k][j + l];
                }
            write_loop:
                for (int l = 0; l < S::LANES; ++l) c[i][j + l] = sum[l];
            }
        }
    }
}

// Dataflow over the loop: the next step's buffers are loaded while this one's are multiplied.
template <typename S>
void sum_tile(const float* a, const float* b, float c[S::TILE_M][S::TILE_N], Size size, Tile at, Stride sa, Stride sb,
              int steps) {
    constexpr int LANES = S::LANES;
    static_assert(S::TILE_N % LANES == 0 && S::TILE_M >= MIN_SUMS, "whole lanes, and rows to hide the adder");
step_loop:
    for (int t = 0; t < steps; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
#pragma HLS DATAFLOW
        float a_tile[S::TILE_M][S::TILE_K];
        float b_tile[S::TILE_K][S::TILE_N];
#pragma HLS ARRAY_PARTITION variable=b_tile type=cyclic factor=LANES dim=2
        load_a<S>(a, sa, a_tile, size, at, t);
        load_b<S>(b, sb, b_tile, size, at, t);
        multiply<S>(a_tile, b_tile, c, size, at, t);
    }
}
}  // namespace matmul
