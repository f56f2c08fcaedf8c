// The body that gemm and its variants share: c = epilogue(a * b), int8 x int8 -> int32, row-major.
//
// A variant is a Shape (the table below) and a Multiplier (what products are made of: two of int8,
// and one of float in the epilogue).
//
// | Shape member | meaning                                                              |
// |--------------|----------------------------------------------------------------------|
// | DEPTH        | products added up in one dot product; DEPTH * WIDTH = MAC/cycle      |
// | WIDTH        | dot products a cycle, neighbouring columns of c                      |
// | TILE_M/N     | rows and columns of c kept on chip while K passes by                 |
// | TILE_K       | columns of a (rows of b) in one pair of buffers                      |
// | HOLD         | weights are copied to registers for a pass, not read again each row  |
//
// A cycle takes DEPTH values of one row of a and a DEPTH x WIDTH block of b, which stays the same
// while the rows of the tile pass, and adds into WIDTH neighbouring sums. A sum is met again after
// MIN_ROWS cycles at the earliest, longer than the adder tree is deep: that is what gives II=1.
#pragma once
#include <cstddef>
#include <cstdint>

#include "gemm_memory.hpp"
#include "gemm_store.hpp"

namespace gemm_core {
constexpr int MIN_ROWS = 16;

// Sums beyond rows x cols are made of what the buffers held before; they are never stored.
template <typename S, typename Multiplier>
void compute(const int8_t a[S::TILE_M][S::TILE_K], const int8_t b[S::TILE_K][S::TILE_N],
             int32_t c[S::TILE_M][S::TILE_N], Tile at, int s, int total) {
    constexpr int HALF = S::WIDTH / 2;
    const int padded = padded_depth_of<S>(s, total);
    const int rows = at.rows < MIN_ROWS ? MIN_ROWS : at.rows;
depth_loop:
    for (int k = 0; k < padded; k += S::DEPTH) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=2
    column_loop:
        for (int j = 0; j < at.cols; j += S::WIDTH) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
            int8_t held[S::DEPTH][S::WIDTH];
#pragma HLS ARRAY_PARTITION variable=held type=complete dim=0
            if (S::HOLD) hold<S>(b, k, j, held);
        row_loop:
            for (int i = 0; i < rows; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE_M
// A sum comes again with the next block of weights, after at least MIN_ROWS rows.
#pragma HLS DEPENDENCE variable=c type=inter direction=RAW distance=MIN_ROWS true
                const bool first = s == 0 && k == 0;
                int32_t sum[S::WIDTH];
            start_loop:
                for (int w = 0; w < S::WIDTH; ++w) sum[w] = first ? 0 : c[i][j + w];
            dot_loop:
                for (int d = 0; d < S::DEPTH; ++d) {
                pair_loop:
                    for (int w = 0; w < HALF; ++w) {
                        int16_t low, high;
                        Multiplier::pair(a[i][k + d], S::HOLD ? held[d][w] : b[k + d][j + w],
                                         S::HOLD ? held[d][w + HALF] : b[k + d][j + w + HALF], low, high);
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

// Dataflow over the loop: the next step's buffers are loaded while this one's are multiplied.
template <typename S, typename Multiplier>
void compute_tile(hls::burst_maxi<int8_t> a, hls::burst_maxi<int8_t> b, int32_t c[S::TILE_M][S::TILE_N], Tile at, int k,
                  int lda, int ldb, int steps) {
step_loop:
    for (int s = 0; s < steps; ++s) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
#pragma HLS DATAFLOW
        constexpr int DEPTH = S::DEPTH, WIDTH = S::WIDTH;
        static_assert(S::TILE_K % DEPTH == 0 && S::TILE_N % WIDTH == 0, "a tile is whole blocks");
        int8_t a_tile[S::TILE_M][S::TILE_K];
        int8_t b_tile[S::TILE_K][S::TILE_N];
#pragma HLS ARRAY_PARTITION variable=a_tile type=cyclic factor=DEPTH dim=2
#pragma HLS ARRAY_PARTITION variable=b_tile type=cyclic factor=DEPTH dim=1
#pragma HLS ARRAY_PARTITION variable=b_tile type=cyclic factor=WIDTH dim=2
        load_a<S>(a, a_tile, at, s, k, lda);
        load_b<S>(b, b_tile, at, s, k, ldb);
        compute<S, Multiplier>(a_tile, b_tile, c, at, s, k);
    }
}

template <typename S, typename Multiplier>
void product(hls::burst_maxi<int8_t> a, hls::burst_maxi<int8_t> b, hls::burst_maxi<int32_t> c, int m, int n, int k,
             int lda, int ldb, int ldc, hls::burst_maxi<int32_t> bias, hls::burst_maxi<float> scale, int mode) {
    constexpr int WIDTH = S::WIDTH;
    static_assert(WIDTH % 2 == 0 && S::TILE_M >= MIN_ROWS, "columns go in pairs, rows hide the adder tree");
    int32_t c_tile[S::TILE_M][S::TILE_N];
#pragma HLS ARRAY_PARTITION variable=c_tile type=cyclic factor=WIDTH dim=2
    int32_t bias_tile[S::TILE_N];
    float scale_tile[S::TILE_N];
#pragma HLS ARRAY_PARTITION variable=bias_tile type=cyclic factor=LANES
#pragma HLS ARRAY_PARTITION variable=scale_tile type=cyclic factor=LANES
tile_rows:
    for (int row = 0; row < m; row += S::TILE_M) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
    tile_columns:
        for (int col = 0; col < n; col += S::TILE_N) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
            const Tile at = {row, col, at_most(m - row, S::TILE_M), at_most(n - col, S::TILE_N)};
            const int steps = k > 0 ? (k - 1) / S::TILE_K + 1 : 1;  // an empty sum is zero, and stored
            load_columns<int32_t, S::TILE_N>(bias, bias_tile, at, mode & BIAS);
            load_columns<float, S::TILE_N>(scale, scale_tile, at, (mode & KIND) != INT32);
            compute_tile<S, Multiplier>(a, b, c_tile, at, k > 0 ? k : 0, lda, ldb, steps);
            store<S, Multiplier>(c_tile, bias_tile, scale_tile, c, at, ldc, mode);
        }
    }
}
}  // namespace gemm_core
