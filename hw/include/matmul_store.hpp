// The way out of a matmul kernel: tiles of sums, scaled, with bias and ReLU, to memory.
#pragma once
#include "matmul.hpp"

namespace matmul {
// Part of a row of the bias, and of the result: neighbours in memory come and go in bursts.
template <typename S>
void load_line(const float* memory, float line[S::TILE_N], int64_t from, int step, int count) {
    if (step == 1) {
    burst_loop:
        for (int j = 0; j < count; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE_N
            line[j] = memory[from + j];
        }
    } else {
    single_loop:
        for (int j = 0; j < count; ++j, from += step) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE_N
            line[j] = memory[from];
        }
    }
}

template <typename S>
void store_line(const float line[S::TILE_N], float* memory, int64_t to, int step, int count) {
    if (step == 1) {
    burst_loop:
        for (int j = 0; j < count; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE_N
            memory[to + j] = line[j];
        }
    } else {
    single_loop:
        for (int j = 0; j < count; ++j, to += step) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE_N
            memory[to] = line[j];
        }
    }
}

// -0 and NaN pass through ReLU, as in torch.
template <typename S>
void store(const float sums[S::TILE_M][S::TILE_N], const float* bias, float* c, Size size, Tile at, Stride s_bias,
           Stride sc, float alpha, float beta, int mode) {
store_rows:
    for (int i = 0; i < at.rows; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE_M
        const int64_t to = place(sc, at.batch, at.row0 + i, at.col0);
        const int64_t from = place(s_bias, at.batch, at.row0 + i, at.col0);
        float added[S::TILE_N], line[S::TILE_N];
        if (mode & BIAS) load_line<S>(bias, added, from, s_bias.column, at.cols);
    finish_columns:
        for (int j = 0; j < at.cols; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE_N
            const float product = alpha * (size.k > 0 ? sums[i][j] : 0.0f);  // an empty sum is zero
            float value = product;
            if (mode & BIAS) value = product + beta * added[j];
            if (mode & RELU && value < 0.0f) value = 0.0f;
            line[j] = value;
        }
        store_line<S>(line, c, to, sc.column, at.cols);
    }
}

template <typename S>
void product(const float* a, const float* b, const float* bias, float* c, Size size, Stride sa, Stride sb,
             Stride s_bias, Stride sc, float alpha, float beta, int mode) {
    float sums[S::TILE_M][S::TILE_N];
    constexpr int LANES = S::LANES;
    static_assert(LANES > 0, "banks of sums");
#pragma HLS ARRAY_PARTITION variable=sums type=cyclic factor=LANES dim=2
batch_loop:
    for (int matrix = 0; matrix < size.batch; ++matrix) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
    tile_rows:
        for (int row = 0; row < size.m; row += S::TILE_M) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
        tile_columns:
            for (int col = 0; col < size.n; col += S::TILE_N) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
                const Tile at = {matrix, row, col, at_most(size.m - row, S::TILE_M), at_most(size.n - col, S::TILE_N)};
                sum_tile<S>(a, b, sums, size, at, sa, sb, (size.k + S::TILE_K - 1) / S::TILE_K);
                store<S>(sums, bias, c, size, at, s_bias, sc, alpha, beta, mode);
            }
        }
    }
}
}  // namespace matmul
