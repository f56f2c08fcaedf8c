// The body that gemm and its variants share: c = a * b, int8 x int8 -> int32, row-major.
//
// A variant is a Shape (the table below) and a Multiplier (what two int8 products are made of).
//
// | Shape member | meaning                                                              |
// |--------------|----------------------------------------------------------------------|
// | DEPTH        | products added up in one dot product; DEPTH * WIDTH = MAC/cycle      |
// | WIDTH        | dot products a cycle, neighbouring columns of c                      |
// | TILE_M/N     | rows and columns of c kept on chip while K passes by                 |
// | TILE_K       | columns of a (rows of b) in one pair of buffers                      |
//
// A cycle takes DEPTH values of one row of a and a DEPTH x WIDTH block of b, which stays the same
// while the rows of the tile pass, and adds into WIDTH neighbouring sums. A sum is met again after
// MIN_ROWS cycles at the earliest, longer than the adder tree is deep: that is what gives II=1.
#pragma once
#include <cstddef>
#include <cstdint>

namespace gemm_core {
constexpr int MIN_ROWS = 16;

// One step of a tile: c[row0 +: rows][col0 +: cols] over k in k0 +: depth.
struct Block { int row0, col0, k0, rows, cols, depth; };

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

// Sums beyond rows x cols are made of what the buffers held before; they are never stored.
template <typename S, typename Multiplier>
void compute(const int8_t a[S::TILE_M][S::TILE_K], const int8_t b[S::TILE_K][S::TILE_N],
             int32_t c[S::TILE_M][S::TILE_N], Block at, int padded_depth) {
    constexpr int HALF = S::WIDTH / 2;
    const int rows = at.rows < MIN_ROWS ? MIN_ROWS : at.rows;
depth_loop:
    for (int k = 0; k < padded_depth; k += S::DEPTH) {
    column_loop:
        for (int j = 0; j < at.cols; j += S::WIDTH) {
        row_loop:
            for (int i = 0; i < rows; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS DEPENDENCE variable=c type=inter direction=RAW distance=MIN_ROWS true
                const bool first = at.k0 == 0 && k == 0;
                int32_t sum[S::WIDTH];
            start_loop:
                for (int w = 0; w < S::WIDTH; ++w) sum[w] = first ? 0 : c[i][j + w];
            dot_loop:
                for (int d = 0; d < S::DEPTH; ++d) {
                pair_loop:
                    for (int w = 0; w < HALF; ++w) {
                        int16_t low, high;
                        Multiplier::pair(a[i][k + d], b[k + d][j + w], b[k + d][j + w + HALF], low, high);
                        sum[w] += low;
                        sum[w + HALF] += high;
                    }
                }
            end_loop:
                for (int w = 0; w < S::WIDTH; ++w) c[i][j + w] = sum[w];
            }
        }
    }
}

// Loading the next buffers overlaps with computing on these.
template <typename S, typename Multiplier>
void step(const int8_t* a, const int8_t* b, int32_t c[S::TILE_M][S::TILE_N], Block at, int lda, int ldb) {
#pragma HLS DATAFLOW
    constexpr int DEPTH = S::DEPTH, WIDTH = S::WIDTH;
    static_assert(S::TILE_K % DEPTH == 0 && S::TILE_N % WIDTH == 0, "a tile is whole blocks");
    int8_t a_tile[S::TILE_M][S::TILE_K];
    int8_t b_tile[S::TILE_K][S::TILE_N];
#pragma HLS ARRAY_PARTITION variable=a_tile type=cyclic factor=DEPTH dim=2
#pragma HLS ARRAY_PARTITION variable=b_tile type=cyclic factor=DEPTH dim=1
#pragma HLS ARRAY_PARTITION variable=b_tile type=cyclic factor=WIDTH dim=2
    const int padded = at.depth > 0 ? (at.depth + DEPTH - 1) / DEPTH * DEPTH : DEPTH;
    const size_t a_first = static_cast<size_t>(at.row0) * lda + at.k0;
    const size_t b_first = static_cast<size_t>(at.k0) * ldb + at.col0;
    load<S::TILE_M, S::TILE_K>(a, a_tile, a_first, lda, at.rows, at.depth, at.rows, padded);
    load<S::TILE_K, S::TILE_N>(b, b_tile, b_first, ldb, at.depth, at.cols, padded, at.cols);
    compute<S, Multiplier>(a_tile, b_tile, c, at, padded);
}

template <typename S>
void store(const int32_t tile[S::TILE_M][S::TILE_N], int32_t* c, Block at, int ldc) {
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

template <typename S, typename Multiplier>
void product(const int8_t* a, const int8_t* b, int32_t* c, int m, int n, int k, int lda, int ldb, int ldc) {
    constexpr int WIDTH = S::WIDTH;
    static_assert(WIDTH % 2 == 0 && S::TILE_M >= MIN_ROWS, "columns go in pairs, rows hide the adder tree");
    int32_t c_tile[S::TILE_M][S::TILE_N];
#pragma HLS ARRAY_PARTITION variable=c_tile type=cyclic factor=WIDTH dim=2
tile_rows:
    for (int row = 0; row < m; row += S::TILE_M) {
    tile_columns:
        for (int col = 0; col < n; col += S::TILE_N) {
            Block at = {row, col, 0, at_most(m - row, S::TILE_M), at_most(n - col, S::TILE_N), 0};
            const int steps = k > 0 ? (k - 1) / S::TILE_K + 1 : 1;  // an empty sum is zero, and stored
        tile_depth:
            for (int s = 0; s < steps; ++s) {
                at.k0 = s * S::TILE_K;
                at.depth = k > 0 ? at_most(k - at.k0, S::TILE_K) : 0;
                step<S, Multiplier>(a, b, c_tile, at, lda, ldb);
            }
            store<S>(c_tile, c, at, ldc);
        }
    }
}
}  // namespace gemm_core
