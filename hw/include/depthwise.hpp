// The depthwise kernels: conv2d with one channel a group, and nothing to add up over channels.
//
// The lanes lie along the rows of the weight: a cycle takes a column of taps, whose cells are in as many
// banks of the patch, and adds it to the sum of one pixel. Shape::LANES banks, Shape::WIDTH cells a row.
#pragma once
#include "conv2d_store.hpp"

namespace depthwise {
using conv2d::MIN_SUMS; using conv2d::Range; using conv2d::Size; using conv2d::Steps; using conv2d::Tile; using conv2d::Tiling;
using conv2d::Window; using conv2d::at_most; using conv2d::extent; using conv2d::inside; using conv2d::place; using conv2d::whole;

// Read the part of the channel that a tile needs; cells beside the image are zero.
template <typename S>
void load_patch(const typename S::Value* image, Steps s, Size size, Window w, Tile at, typename S::Value patch[S::ROWS][S::WIDTH],
                bool kept[S::ROWS][S::WIDTH]) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    const int rows = extent(at.rows, w.stride_y, size.k_rows, w.step_y);
    const int columns = extent(at.columns, w.stride_x, size.k_columns, w.step_x);
    const Range y = inside(at.y * w.stride_y - w.pad_y, rows, size.height, 1);
    const Range x = inside(at.x * w.stride_x - w.pad_x, columns, size.width, 1);
patch_rows:
    for (int row = 0; row < rows; ++row) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::ROWS
        const int from_row = row - y.to + y.first;
        const bool there = from_row >= y.first && from_row < y.last;
        int64_t from = place(s, at.group, at.batch, 0, from_row, x.first);
        const int count = there ? x.last - x.first : 0;
    clear_columns:
        for (int column = 0; column < columns; ++column) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::WIDTH
            kept[row][column] = false;
            patch[row][column] = 0;
        }
        if (s.column == 1) {
        burst_loop:
            for (int cell = 0; cell < count; ++cell) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=0 max=S::WIDTH
                kept[row][x.to + cell] = true;
                patch[row][x.to + cell] = image[from + cell];
            }
        } else {
        single_loop:
            for (int cell = 0; cell < count; ++cell, from += s.column) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=0 max=S::WIDTH
                kept[row][x.to + cell] = true;
                patch[row][x.to + cell] = image[from];
            }
        }
    }
}

// A tap of the weight, and the row and column of the patch in which the first pixel meets it.
struct Corner { int tap, row, column; };

// One column of up to LANES taps, `taps` from one to the next, for every pixel of the tile. Zero times a weight
// that is not finite would not be nothing, so that cells beside the image are left out.
template <typename S>
void add_column(const typename S::Value patch[S::ROWS][S::WIDTH], const bool kept[S::ROWS][S::WIDTH],
                const typename S::Value weights[S::OUTS][S::TAPS], Window w, int columns, int count, int lanes,
                int taps, Corner from, typename S::Sum sums[S::OUTS][S::PIXELS]) {
    // The column of taps stays the same while the pixels pass: registers, which LANES products read at once.
    typename S::Value held[S::LANES];
    int below[S::LANES];
#pragma HLS ARRAY_PARTITION variable=held type=complete
#pragma HLS ARRAY_PARTITION variable=below type=complete
    int tap = from.tap, row_below = from.row;
hold_loop:
    for (int l = 0; l < S::LANES; ++l, tap += taps, row_below += w.step_y) {
#pragma HLS PIPELINE II=1
        held[l] = l < lanes ? weights[0][tap] : static_cast<typename S::Value>(0);
        below[l] = row_below;
    }
    int x = 0, top = 0, column = from.column;
pixel_loop:
    for (int p = 0; p < (count < MIN_SUMS ? MIN_SUMS : count); ++p) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::PIXELS
// A sum comes again with the next column of taps; few pixels wait until MIN_SUMS cycles have passed.
#pragma HLS DEPENDENCE variable=sums type=inter direction=RAW distance=MIN_SUMS true
        if (p >= count) continue;  // few pixels wait for the adder
        typename S::Sum sum = 0;
    lane_loop:
        for (int l = 0; l < S::LANES; ++l) {
#pragma HLS UNROLL
            if (l >= lanes) continue;
            const int row = top + below[l];
            const typename S::Sum product = static_cast<typename S::Sum>(held[l]) * patch[row][column];
            sum += kept[row][column] ? product : 0;
        }
        sums[0][p] += sum;
        column += w.stride_x;
        if (++x == columns) {
            x = 0;
            column = from.column;
            top += w.stride_y;
        }
    }
}

// One result channel: its weights, and all columns of them.
template <typename S>
void sum_tile(const typename S::Value* weight, const typename S::Value patch[S::ROWS][S::WIDTH], const bool kept[S::ROWS][S::WIDTH],
              Size size, Window w, Steps sw, Tile at, typename S::Sum sums[S::OUTS][S::PIXELS]) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    typename S::Value weights[S::OUTS][S::TAPS];
    bool finite;  // cells beside the image are left out anyway
    conv2d::load_weights<S>(weight, sw, size, Tiling{1, 1, size.k_rows, size.k_columns}, at, 0, 1, weights, finite);
    const int count = at.rows * at.columns;
clear_loop:
    for (int p = 0; p < count; ++p) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::PIXELS
        sums[0][p] = 0;
    }
part_loop:
    for (int first = 0, row = 0, tap = 0; first < size.k_rows; first += S::LANES) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=4
    tap_loop:
        for (int j = 0, column = 0; j < size.k_columns; ++j, column += w.step_x) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=8
            add_column<S>(patch, kept, weights, w, at.columns, count, at_most(size.k_rows - first, S::LANES), size.k_columns,
                          Corner{tap + j, row, column}, sums);
        }
        row += S::LANES * w.step_y;
        tap += S::LANES * size.k_columns;
    }
}

template <typename S, typename Store, typename... Ports>
void convolve(const typename S::Value* image, const typename S::Value* weight, conv2d::Job job, Ports... ports) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    typename S::Value patch[S::ROWS][S::WIDTH];
    bool kept[S::ROWS][S::WIDTH];
    typename S::Sum sums[S::OUTS][S::PIXELS];
    constexpr int LANES = S::LANES;
    static_assert(S::ROWS % LANES == 0 && S::OUTS == 1, "rows in banks, one channel at a time");
#pragma HLS ARRAY_PARTITION variable=patch type=cyclic factor=LANES dim=1
#pragma HLS ARRAY_PARTITION variable=kept type=cyclic factor=LANES dim=1
    const Size size = job.size;
    const Window w = job.window;
    const Tiling t = job.tiling;
    if (t.rows < 1 || t.columns < 1 || t.rows * t.columns > S::PIXELS || size.k_rows * size.k_columns > S::TAPS ||
        extent(t.rows, w.stride_y, size.k_rows, w.step_y) > S::ROWS || extent(t.columns, w.stride_x, size.k_columns, w.step_x) > S::WIDTH) return;
    const int down = whole(size.rows, t.rows), across = whole(size.columns, t.columns);
channel_loop:
    for (int item = 0; item < size.groups * size.batch; ++item) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=256
    tile_loop:
        for (int tile = 0; tile < down * across; ++tile) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
            const int y = tile / across * t.rows, x = tile % across * t.columns;
            Tile at = {item / size.batch, item % size.batch, 0, y, x, 1, at_most(size.rows - y, t.rows), at_most(size.columns - x, t.columns)};
            load_patch<S>(image, job.image, size, w, at, patch, kept);
        out_loop:
            for (int out = 0; out < size.outs; ++out) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=4
                at.out = out;
                sum_tile<S>(weight, patch, kept, size, w, job.weight, at, sums);
                Store::template store<S>(sums, size, job.result, at, job.mode, ports...);
            }
        }
    }
}
}  // namespace depthwise
