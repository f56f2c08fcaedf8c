// The inner loops of a conv2d kernel: taps and lanes.
#pragma once
#include <cstddef>

#include "conv2d.hpp"

namespace conv2d {
template <typename S>
void clear(int outs, int lanes, typename S::Sum sums[S::OUTS][S::PIXELS]) {
clear_outs:
    for (int o = 0; o < outs; ++o) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::OUTS
    clear_chunks:
        for (int p = 0; p < lanes; p += S::LANES) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=32
            for (int l = 0; l < S::LANES; ++l) sums[o][p + l] = 0;
        }
    }
}

// Where the pixels of a tile begin in the patch; lanes beyond the tile look at its first cell.
template <typename S>
void find_pixels(Window w, Tile at, int columns, int32_t pixel[S::PIXELS]) {
    const int count = whole(at.rows * at.columns, S::LANES) * S::LANES, next_row = w.stride_y * columns;
    int y = 0, x = 0, row = 0, cell = 0;
pixel_loop:
    for (int p = 0; p < count; ++p) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::PIXELS
        pixel[p] = y < at.rows ? cell : 0;
        cell += w.stride_x;
        if (++x == at.columns) {
            x = 0;
            ++y;
            row += next_row;
            cell = row;
        }
    }
}

// One tap: what each pixel of the tile sees through it.
template <typename S>
void gather(const typename S::Value patch[S::PATCH], const int32_t kept[S::PATCH], const int32_t pixel[S::PIXELS],
            Window w, int columns, int k_columns, int t, int lanes, bool finite, typename S::Value seen[S::PIXELS], int32_t valid[S::PIXELS]) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    const int tap = t / k_columns * w.step_y * columns + t % k_columns * w.step_x;
gather_loop:
    for (int p = 0; p < lanes; ++p) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::PIXELS
        seen[p] = patch[pixel[p] + tap];
        if (!finite) valid[p] = kept[pixel[p] + tap];
    }
}

template <typename S>
void accumulate(const typename S::Value seen[S::PIXELS], const int32_t valid[S::PIXELS],
                const typename S::Value weights[S::OUTS][S::TAPS], int tap, int outs, int lanes, bool finite,
                typename S::Sum sums[S::OUTS][S::PIXELS]) {
out_loop:
    for (int o = 0; o < outs; ++o) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::OUTS
        const typename S::Sum weight = weights[o][tap];
    chunk_loop:
        for (size_t p = 0; p < static_cast<size_t>(lanes); p += S::LANES) {  // 64 bits let a PC use its lanes
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=32
// A sum comes again with the next tap, in another call; a call has rows of zeros up to MIN_SUMS sums.
#pragma HLS DEPENDENCE variable=sums type=inter direction=RAW distance=MIN_SUMS true
            typename S::Sum product[S::LANES];
        product_loop:
            for (int l = 0; l < S::LANES; ++l) product[l] = weight * seen[p + l];
            if (!finite) {  // what lies beside the image counts as zero; times infinity that is not nothing
            mask_loop:
                for (int l = 0; l < S::LANES; ++l) product[l] = valid[p + l] ? product[l] : 0;
            }
        sum_loop:
            for (int l = 0; l < S::LANES; ++l) sums[o][p + l] += product[l];
        }
    }
}

// Dataflow over the loop: the next tap is gathered while this one's products are added up.
template <typename S>
void multiply_taps(const typename S::Value patch[S::PATCH], const int32_t kept[S::PATCH], const int32_t pixel[S::PIXELS],
                   const typename S::Value weights[S::OUTS][S::TAPS], Window w, int columns, int k_columns, int outs,
                   int lanes, bool finite, typename S::Sum sums[S::OUTS][S::PIXELS], int count) {
    constexpr int LANES = S::LANES;
    static_assert(S::PIXELS % LANES == 0 && S::OUTS >= MIN_SUMS, "whole lanes, and sums to hide the adder");
tap_loop:
    for (int t = 0; t < count; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TAPS
#pragma HLS DATAFLOW
        typename S::Value seen[S::PIXELS];
        int32_t valid[S::PIXELS];
#pragma HLS ARRAY_PARTITION variable=seen type=cyclic factor=LANES
#pragma HLS ARRAY_PARTITION variable=valid type=cyclic factor=LANES
        gather<S>(patch, kept, pixel, w, columns, k_columns, t, lanes, finite, seen, valid);
        accumulate<S>(seen, valid, weights, t, outs, lanes, finite, sums);
    }
}

template <typename S>
void multiply(const typename S::Value patch[S::PATCH], const int32_t kept[S::PATCH],
              const typename S::Value weights[S::OUTS][S::TAPS], Size size, Window w, Tiling tiling, Tile at, int step,
              int outs, bool finite, typename S::Sum sums[S::OUTS][S::PIXELS]) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    const Taps taps = taps_of(size, tiling, step);
    const int columns = extent(at.columns, w.stride_x, taps.k_columns, w.step_x);
    const int lanes = whole(at.rows * at.columns, S::LANES) * S::LANES;
    int32_t pixel[S::PIXELS];
    find_pixels<S>(w, at, columns, pixel);
    multiply_taps<S>(patch, kept, pixel, weights, w, columns, taps.k_columns, outs, lanes, finite, sums,
                     taps.k_rows * taps.k_columns);
}
}  // namespace conv2d
