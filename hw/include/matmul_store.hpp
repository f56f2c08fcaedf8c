// The way out of a matmul kernel: tiles of sums, scaled, with bias and ReLU, to memory.
#pragma once
#include "matmul.hpp"

namespace matmul {
// -0 and NaN pass through ReLU, as in torch.
template <typename S>
void store(const float sums[S::TILE_M][S::TILE_N], const float* bias, float* c, Size size, Tile at, Stride s_bias,
           Stride sc, float alpha, float beta, int mode) {
store_rows:
    for (int i = 0; i < at.rows; ++i) {
        const int64_t to = place(sc, at.batch, at.row0 + i, at.col0);
        const int64_t from = place(s_bias, at.batch, at.row0 + i, at.col0);
    store_columns:
        for (int j = 0; j < at.cols; ++j) {
#pragma HLS PIPELINE II=1
            const float product = alpha * (size.k > 0 ? sums[i][j] : 0.0f);  // an empty sum is zero
            float value = product;
            if (mode & BIAS) value = product + beta * bias[from + static_cast<int64_t>(j) * s_bias.column];
            if (mode & RELU && value < 0.0f) value = 0.0f;
            c[to + static_cast<int64_t>(j) * sc.column] = value;
        }
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
    tile_rows:
        for (int row = 0; row < size.m; row += S::TILE_M) {
        tile_columns:
            for (int col = 0; col < size.n; col += S::TILE_N) {
                const Tile at = {matrix, row, col, at_most(size.m - row, S::TILE_M), at_most(size.n - col, S::TILE_N)};
                sum_tile<S>(a, b, sums, size, at, sa, sb);
                store<S>(sums, bias, c, size, at, s_bias, sc, alpha, beta, mode);
            }
        }
    }
}
}  // namespace matmul
