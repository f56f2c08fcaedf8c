// Normalisation of layers: each row with its own mean and variance, summed in double.
#pragma once
#include "norm.hpp"

namespace norm {
static void load_row(const float* source, float row[ROW], int from, int step, int count) {
    if (step == 1) {
    burst_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=ROW
            row[i] = source[from + i];
        }
    } else {
    single_loop:
        for (int i = 0; i < count; ++i, from += step) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=ROW
            row[i] = source[from];
        }
    }
}

// Add the elements, or the squares of their distances from the mean, to sums in turn.
static void add_up(const float row[ROW], double sums[LANES], int count, double mean, bool squares) {
add_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=ROW
// A lane is met again after LANES iterations; sums of the next part begin with the first lane after a drain.
#pragma HLS DEPENDENCE variable=sums type=inter direction=RAW distance=LANES true
        const double distance = row[i] - mean;
        sums[i % LANES] += squares ? distance * distance : row[i];
    }
}

inline double total_of(const double sums[LANES]) {
    double total = 0;
total_loop:
    for (int lane = 0; lane < LANES; ++lane) total += sums[lane];
    return total;
}

// In place: the way to memory has loops of its own, one of them for bursts. So have the two vectors: read in a
// branch of the loop, they would be single accesses.
static void normalise_row(float row[ROW], const float* weight, const float* bias, int first, int count, int affine,
                          double mean, float factor) {
normalise_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=ROW
        row[i] = static_cast<float>(row[i] - mean) * factor;
    }
    if (affine & WEIGHT) {
    weight_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=ROW
            row[i] = row[i] * weight[first + i];
        }
    }
    if (affine & BIAS) {
    bias_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=ROW
            row[i] = row[i] + bias[first + i];
        }
    }
}

static void store_row(const float row[ROW], float* result, int to, int step, int count) {
    if (step == 1) {
    burst_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=ROW
            result[to + i] = row[i];
        }
    } else {
    single_loop:
        for (int i = 0; i < count; ++i, to += step) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=ROW
            result[to] = row[i];
        }
    }
}

// `means` and `factors` receive a value a row: its mean, and one by its deviation.
static void layer(const float* source, float* means, float* factors, const float* weight, const float* bias,
                  float* result, int rows, int cols, int affine, float eps, Strides from, Strides to) {
    float part[ROW];
    const bool once = cols <= ROW;  // the row stays on chip
row_loop:
    for (int r = 0, source_row = 0, result_row = 0; r < rows; ++r, source_row += from.outer, result_row += to.outer) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
        double mean = 0;
        float factor = 0;
    pass_loop:
        for (int pass = 0; pass < 3; ++pass) {
            double sums[LANES] = {};
        part_loop:
            for (int first = 0; first < cols; first += ROW) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=4
                const int count = at_most(cols - first, ROW);
                if (pass == 0 || !once) {
                    load_row(source, part, source_row + first * from.inner, from.inner, count);
                }
                if (pass < 2) {
                    add_up(part, sums, count, mean, pass == 1);
                } else {
                    normalise_row(part, weight, bias, first, count, affine, mean, factor);
                    store_row(part, result, result_row + first * to.inner, to.inner, count);
                }
            }
            if (pass == 0) mean = total_of(sums) / cols;
            if (pass == 1) factor = one_by_deviation(static_cast<float>(total_of(sums) / cols), eps);
        }
        means[r] = static_cast<float>(mean);
        factors[r] = factor;
    }
}
}  // namespace norm
