// sparse: products of a matrix in compressed rows (CSR) with a vector or a matrix, in float32.
//
// C is a table of constants: VECTOR, LANES, TILE. Row r has the entries crow[r] to crow[r + 1] - 1 of col and values.
// Indices are 32-bit words; those of 64 bits are every other word (wide = 2), the low one is read.
#pragma once

namespace sparse {

// The vector on the chip, where it fits: its elements are read in any order, which DDR does badly.
template <class C> void load_vector(const float* x, int columns, int step, float vector[C::VECTOR]) {
    if (step == 1) {
    burst_loop:
        for (int i = 0; i < columns; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::VECTOR
            vector[i] = x[i];
        }
    } else {
    single_loop:
        for (int i = 0; i < columns; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::VECTOR
            vector[i] = x[i * step];
        }
    }
}

// Products go to the partial sums in turn: an addition takes several cycles, and each sum waits for its own only.
template <class C, class Element>
float row_sum(const int* col, const float* values, int begin, int end, int wide, Element element) {
    float partial[C::LANES];  // whole: in registers of their own, no lane would have a distance
clear_loop:
    for (int lane = 0; lane < C::LANES; ++lane) {
#pragma HLS PIPELINE II=1
        partial[lane] = 0.0f;
    }
// Columns of one or two words, as a register says: single accesses.
entry_loop:
    for (int k = begin; k < end; ++k) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=0 max=1024
// A lane comes again after all the others.
#pragma HLS DEPENDENCE variable=partial type=inter direction=RAW distance=C::LANES true
        partial[(k - begin) % C::LANES] += values[k] * element(col[k * wide]);
    }
fold_loop:
    for (int half = C::LANES / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half; ++lane) {  // two reads and a write of one memory
#pragma HLS PIPELINE II=2
#pragma HLS LOOP_TRIPCOUNT min=1 max=4
#pragma HLS LOOP_FLATTEN off
// A later iteration reads its own lane and one from half on, and none of those is written before. The next half
// begins when the pipeline is empty: the loops stay two.
#pragma HLS DEPENDENCE variable=partial type=inter dependent=false
            partial[lane] += partial[lane + half];
        }
    }
    return partial[0];
}

// y = A x; x and y in steps of words. A vector longer than VECTOR is read from DDR, element by element.
template <class C>
void spmv(const int* crow, const int* col, const float* values, const float* x, float* y, int rows, int columns,
          int wide, int step_x, int step_y) {
    static float vector[C::VECTOR];
    const bool fits = columns <= C::VECTOR;
    if (fits) load_vector<C>(x, columns, step_x, vector);
    int begin = rows > 0 ? crow[0] : 0;
// A bound and a result a row: single accesses.
vector_row_loop:
    for (int r = 0; r < rows; ++r) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
        const int end = crow[(r + 1) * wide];
        y[r * step_y] = fits
            ? row_sum<C>(col, values, begin, end, wide, [&](int c) { return vector[c]; })
            : row_sum<C>(col, values, begin, end, wide, [&](int c) { return x[c * step_x]; });
        begin = end;
    }
}

// out = A B for n columns of B, a tile of them at a time. The sums of a tile stand side by side, so that an entry adds
// its row of B, a column a cycle, and no sum waits for its last addition.
template <class C>
void spmm(const int* crow, const int* col, const float* values, const float* b, float* out, int rows, int n, int wide,
          int row_b, int step_b, int row_out) {
tile_loop:
    for (int first = 0; first < n; first += C::TILE) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
        const int count = n - first < C::TILE ? n - first : C::TILE;
        int begin = crow[0];
    matrix_row_loop:
        for (int r = 0; r < rows; ++r) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
            const int end = crow[(r + 1) * wide];
            float sums[C::TILE];
        zero_loop:
            for (int j = 0; j < count; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::TILE
                sums[j] = 0.0f;
            }
        nonzero_loop:
            for (int k = begin; k < end; ++k) {
#pragma HLS LOOP_TRIPCOUNT min=0 max=1024
                const float value = values[k];
                const float* row = b + col[k * wide] * row_b + first * step_b;
                if (step_b == 1) {
                burst_loop:
                    for (int j = 0; j < count; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::TILE
                        sums[j] += value * row[j];
                    }
                } else {
                strided_loop:
                    for (int j = 0; j < count; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::TILE
                        sums[j] += value * row[j * step_b];
                    }
                }
            }
        store_loop:
            for (int j = 0; j < count; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::TILE
                out[r * row_out + first + j] = sums[j];
            }
            begin = end;
        }
    }
}

}  // namespace sparse
