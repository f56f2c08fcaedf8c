// The body that matrix_mult and matrix_mult_fabric share: out = in1 * in2, 256 x 256 x 256, int8 in
// 32-bit containers, row-major without gaps.
//
// A variant is a WIDTH and a Multiplier (what two int8 products are made of).
//
// in2 is kept on chip; rows of in1 pass by. A cycle multiplies one value of the row by WIDTH
// neighbouring values of a row of in2 and adds into WIDTH sums in registers, so a row of the result
// takes 256 * 256 / WIDTH cycles. The port brings one container a cycle, 256 cycles for a row:
// WIDTH = 256 is as fast as the port, and more would wait for it.
#pragma once
#include <cstdint>

namespace matrix_mult_core {
constexpr int SIZE = 256;

// Only the low byte of a container counts.
inline void load_row(const int32_t* matrix, int8_t row[SIZE], int i) {
load_loop:
    for (int j = 0; j < SIZE; ++j) {
#pragma HLS PIPELINE II=1
        row[j] = static_cast<int8_t>(matrix[i * SIZE + j]);
    }
}

// A row is gathered first and written in words of WIDTH bytes: the memory then needs no byte enables.
template <int WIDTH>
void load_matrix(const int32_t* matrix, int8_t tile[SIZE][SIZE]) {
matrix_loop:
    for (int k = 0; k < SIZE; ++k) {
        int8_t row[SIZE];
#pragma HLS ARRAY_PARTITION variable=row type=cyclic factor=WIDTH
        load_row(matrix, row, k);
    word_loop:
        for (int j = 0; j < SIZE; j += WIDTH) {
#pragma HLS PIPELINE II=1
        byte_loop:
            for (int w = 0; w < WIDTH; ++w) tile[k][j + w] = row[j + w];
        }
    }
}

template <int WIDTH, typename Multiplier>
void multiply_row(const int8_t row[SIZE], const int8_t tile[SIZE][SIZE], int32_t result[SIZE]) {
    constexpr int HALF = WIDTH / 2;
column_loop:
    for (int j = 0; j < SIZE; j += WIDTH) {
        int32_t sums[WIDTH] = {};
#pragma HLS ARRAY_PARTITION variable=sums type=complete
    depth_loop:
        for (int k = 0; k < SIZE; ++k) {
#pragma HLS PIPELINE II=1
        pair_loop:
            for (int w = 0; w < HALF; ++w) {
                int16_t low, high;
                Multiplier::pair(row[k], tile[k][j + w], tile[k][j + w + HALF], low, high);
                sums[w] += low;
                sums[w + HALF] += high;
            }
        }
    result_loop:
        for (int w = 0; w < WIDTH; ++w) {
#pragma HLS UNROLL
            result[j + w] = sums[w];
        }
    }
}

inline void store_row(const int32_t row[SIZE], int32_t* matrix, int i) {
store_loop:
    for (int j = 0; j < SIZE; ++j) {
#pragma HLS PIPELINE II=1
        matrix[i * SIZE + j] = row[j];
    }
}

// Dataflow over the loop: a row is loaded and another one stored while a third is multiplied.
template <int WIDTH, typename Multiplier>
void product_rows(const int32_t* in1, const int8_t tile[SIZE][SIZE], int32_t* out) {
row_loop:
    for (int i = 0; i < SIZE; ++i) {
#pragma HLS DATAFLOW
        int8_t row[SIZE];
        int32_t result[SIZE];
#pragma HLS ARRAY_PARTITION variable=result type=cyclic factor=WIDTH
        load_row(in1, row, i);
        multiply_row<WIDTH, Multiplier>(row, tile, result);
        store_row(result, out, i);
    }
}

template <int WIDTH, typename Multiplier>
void product(const int32_t* in1, const int32_t* in2, int32_t* out) {
    static_assert(WIDTH % 2 == 0 && SIZE % WIDTH == 0, "columns go in pairs, a row is whole groups");
    int8_t tile[SIZE][SIZE];
#pragma HLS ARRAY_RESHAPE variable=tile type=cyclic factor=WIDTH dim=2
    load_matrix<WIDTH>(in2, tile);
    product_rows<WIDTH, Multiplier>(in1, tile, out);
}
}  // namespace matrix_mult_core
