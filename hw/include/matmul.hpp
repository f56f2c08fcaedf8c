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
inline int64_t place(Stride s, int matrix, int row, int column) {
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
    clear_columns:
        for (int j = i < rows ? cols : 0; j < all_cols; ++j) {
#pragma HLS PIPELINE II=1
            tile[i][j] = 0.0f;
        }
    }
    const bool down = s.row == 1 && s.column != 1;
    const int64_t outer_step = down ? s.column : s.row, inner_step = down ? s.row : s.column;
load_outer:
    for (int o = 0; o < (down ? cols : rows); ++o) {
    load_inner:
        for (int i = 0; i < (down ? rows : cols); ++i) {
#pragma HLS PIPELINE II=1
            tile[down ? i : o][down ? o : i] = first[o * outer_step + i * inner_step];
        }
    }
}

template <typename S>
void multiply(const float a[S::TILE_M][S::TILE_K], const float b[S::TILE_K][S::TILE_N], float c[S::TILE_M][S::TILE_N],
              Tile at, int depth, bool first) {
    const int rows = padded_rows<S>(at);
depth_loop:
    for (int k = 0; k < depth; ++k) {
    row_loop:
        for (int i = 0; i < rows; ++i) {
        column_loop:
            for (size_t j = 0; j < static_cast<size_t>(at.cols); j += S::LANES) {  // 64 bits let a PC use its lanes
#pragma HLS PIPELINE II=1
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
void sum_tile(const float* a, const float* b, float c[S::TILE_M][S::TILE_N], Size size, Tile at, Stride sa, Stride sb) {
step_loop:
    for (int k = 0; k < size.k; k += S::TILE_K) {
#pragma HLS DATAFLOW
        constexpr int LANES = S::LANES;
        static_assert(S::TILE_N % LANES == 0 && S::TILE_M >= MIN_SUMS, "whole lanes, and rows to hide the adder");
        float a_tile[S::TILE_M][S::TILE_K];
        float b_tile[S::TILE_K][S::TILE_N];
#pragma HLS ARRAY_PARTITION variable=b_tile type=cyclic factor=LANES dim=2
        const int depth = at_most(size.k - k, S::TILE_K);
        const int columns = (at.cols + LANES - 1) / LANES * LANES;
        load<S::TILE_M, S::TILE_K>(a + place(sa, at.batch, at.row0, k), sa, a_tile, at.rows, depth, padded_rows<S>(at), depth);
        load<S::TILE_K, S::TILE_N>(b + place(sb, at.batch, k, at.col0), sb, b_tile, depth, at.cols, depth, columns);
        multiply<S>(a_tile, b_tile, c, at, depth, k == 0);
    }
}
}  // namespace matmul
