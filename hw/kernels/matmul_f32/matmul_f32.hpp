// matmul_f32: c = alpha * (a @ b) + beta * bias in float32, any sizes and strides, batched.
//
// | parameter   | value | why                                                                     |
// |-------------|-------|-------------------------------------------------------------------------|
// | LANES       | 4     | 20 of the 220 DSPs: 3 for a product, 2 for a sum                        |
// | TILE_M      | 64    | a and b are read at most once for this many rows ...                    |
// | TILE_N      | 128   | ... and columns of c                                                    |
// | TILE_K      | 64    | buffers of a BRAM18 a bank; long enough for 16-beat bursts              |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed              |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS                   |
#pragma once

namespace matmul_f32_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 1 << 16;  // elements behind each pointer in co-simulation

struct Shape {
    static constexpr int LANES = 4, TILE_M = 64, TILE_N = 128, TILE_K = 64;
};
}  // namespace matmul_f32_config

// c[i] = alpha * (a[i] @ b[i]) + beta * bias[i] for i < batch; a[i] is m x k, b[i] k x n, c[i] and
// bias[i] m x n. The four have strides of their own, in elements, from matrix to matrix, row to row and
// column to column, of any size and sign; 0 repeats. c may not overlap what is read. The sums of k = 0
// are zeros.
//
// mode: 4 adds beta * bias, which is not read otherwise; 8 makes negative values 0 (matmul.hpp).
//
// The PL's float cores take subnormal numbers for zero (PG060), and C++ does not.
void matmul_f32(const float* a, const float* b, const float* bias, float* c,
                int batch, int m, int n, int k,
                int a_matrix, int a_row, int a_column, int b_matrix, int b_row, int b_column,
                int bias_matrix, int bias_row, int bias_column, int c_matrix, int c_row, int c_column,
                float alpha, float beta, int mode);
