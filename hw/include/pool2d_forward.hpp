// Pooling, forward: a band of input rows is loaded while the one before is pooled and a third stored.
#pragma once
#include <limits>

#include "pool2d.hpp"

namespace pool2d {
// The part of a plane that a tile's windows see.
struct Band { int row0, col0, rows, cols; };

inline Band band_of(const Tile& tile, const Job& job) {
    const int kind = job.op & KIND;
    const int row = front_of(job.rows, tile.row0, kind);
    const int col = front_of(job.cols, tile.col0, kind);
    const int row_end = span_of(job.rows, tile.row0 + tile.rows(job) - 1, kind).last;
    const int col_end = span_of(job.cols, tile.col0 + tile.cols(job) - 1, kind).last;
    return {row, col, at_least(row_end - row, 0), at_least(col_end - col, 0)};
}

// Part of a row of pixels, into the band from cell `filled` on.
static void load_part(const float* source, float band[BAND], int filled, int from, int step, int count) {
    if (step == 1) {
    burst_loop:
        for (int c = 0; c < count; ++c) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
            band[filled + c] = source[from + c];
        }
    } else {
    single_loop:
        for (int c = 0; c < count; ++c, from += step) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
            band[filled + c] = source[from];
        }
    }
}

static void load_band(const float* source, float band[BAND], int t, const Job& job, Strides strides) {
    const Tile tile = tile_of(t, job);
    const Band at = band_of(tile, job);
    int row = start_of(strides, tile) + at.row0 * strides.row + at.col0 * strides.col, filled = 0;
load_rows:
    for (int r = 0; r < at.rows; ++r, row += strides.row) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
        load_part(source, band, filled, row, strides.col, at.cols);
        filled += at.cols;
    }
}

// The windows of a row of outputs: how many of their rows are inside the image, where the first begins in
// the band, and which pixel of the plane that is.
struct Row { Span span; int taps, cell, pixel; };

// Go through the windows of all outputs together, a pixel of each at a time: the order within a window
// is torch's, row by row, and sums of different outputs do not wait for each other.
static void pool_band(const float band[BAND], float value[TILE], int index[TILE], int t, const Job& job) {
    const Tile tile = tile_of(t, job);
    const int kind = job.op & KIND;
    const Band at = band_of(tile, job);
    const int rows = tile.rows(job), cols = tile.cols(job), outputs = rows * cols;
    Span across[TILE];
    Row down[TILE];
across_loop:
    for (int j = 0; j < cols; ++j) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        across[j] = span_of(job.cols, tile.col0 + j, kind);
    }
down_loop:
    for (int i = 0; i < rows; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        const Span span = span_of(job.rows, tile.row0 + i, kind);
        const int taps = span.first < span.last ? (span.last - span.first - 1) / job.rows.step + 1 : 0;
        down[i] = {span, taps, (span.first - at.row0) * at.cols - at.col0, span.first * job.cols.size};
    }
clear_loop:
    for (int o = 0, i = 0, j = 0; o < outputs; ++o) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        value[o] = kind == MAX ? -std::numeric_limits<float>::infinity() : 0.0f;
        index[o] = down[i].pixel + across[j].first;
        step(i, j, cols);
    }
    const int highest = taps_of(job.rows, kind), widest = taps_of(job.cols, kind);
    const int next_cell = job.rows.step * at.cols, next_pixel = job.rows.step * job.cols.size;
window_rows:
    for (int k = 0, cell = 0, pixel = 0; k < highest; ++k, cell += next_cell, pixel += next_pixel) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
    window_cols:
        for (int l = 0, along = 0; l < widest; ++l, along += job.cols.step) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
        outputs_loop:
            for (int o = 0, i = 0, j = 0; o < outputs; ++o) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
#pragma HLS LOOP_FLATTEN off
// Within one pass an output comes once, and the pipeline drains before the next: that holds because the
// loop is not flattened into the one around it.
#pragma HLS DEPENDENCE variable=value inter false
#pragma HLS DEPENDENCE variable=index inter false
                const int c = across[j].first + along;
                if (k < down[i].taps && c < across[j].last) {
                    const float x = band[down[i].cell + cell + c];
                    if (kind != MAX) {
                        value[o] += x;
                    } else if (x > value[o] || x != x) {  // the last NaN wins, as in torch
                        value[o] = x;
                        index[o] = down[i].pixel + pixel + c;
                    }
                }
                step(i, j, cols);
            }
        }
    }
    if (kind == MAX) return;
divide_loop:
    for (int o = 0, i = 0, j = 0; o < outputs; ++o) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        if (down[i].taps > 0 && across[j].first < across[j].last) {
            value[o] = averaged(value[o], down[i].span, across[j], job);
        }
        step(i, j, cols);
    }
}

// `count` results from number `stored` on.
template <class Value, class Memory>
void store_row(const Value from[TILE], Memory* memory, int stored, int to, int step, int count) {
    if (step == 1) {
    burst_loop:
        for (int j = 0; j < count; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            memory[to + j] = from[stored + j];
        }
    } else {
    single_loop:
        for (int j = 0; j < count; ++j, to += step) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            memory[to] = from[stored + j];
        }
    }
}

static void store_tile(const float value[TILE], const int index[TILE], float* result, int64_t* indices, int t,
                       const Job& job, Strides strides, Strides index_strides) {
    const Tile tile = tile_of(t, job);
    const int rows = tile.rows(job), cols = tile.cols(job);
    int row = start_of(strides, tile) + tile.row0 * strides.row + tile.col0 * strides.col;
    int index_row = start_of(index_strides, tile) + tile.row0 * index_strides.row + tile.col0 * index_strides.col;
    int stored = 0;
store_rows:
    for (int i = 0; i < rows; ++i, row += strides.row, index_row += index_strides.row) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        store_row(value, result, stored, row, strides.col, cols);
        if ((job.op & KIND) == MAX) store_row(index, indices, stored, index_row, index_strides.col, cols);
        stored += cols;
    }
}
}  // namespace pool2d
