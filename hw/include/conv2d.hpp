// The conv2d family: result = weight (*) image for every image, channel and group, any steps.
//
//   result[y][x] += weight[i][j] * image[(y * stride + i * step - pad) / gap], where that is whole
//   and inside: what lies beside the image, or in the gaps between its elements, is no product at all.
//
// The lanes lie along the pixels of a tile of results. A channel of the image is read row by row into
// the `patch` that the tile needs; for each tap of the weight its cells are picked out of the patch
// once (`gather`) and multiplied with the weights of TILE_OUT channels (`accumulate`).
//
// | Shape member | meaning                                                               |
// |--------------|-----------------------------------------------------------------------|
// | LANES        | products a cycle                                                      |
// | PIXELS, OUTS | pixels and channels of the results that are kept on chip              |
// | PATCH, TAPS  | cells of a channel, weights of an output channel in a pair of buffers |
// | Value, Sum   | types of what is read and of the sums                                 |
#pragma once
#include <cstdint>

namespace conv2d {
constexpr int MIN_SUMS = 8;  // a sum is met again after as many cycles: the adder's depth

struct Size { int groups, batch, channels, outs, height, width, rows, columns, k_rows, k_columns; };
struct Window { int stride_y, stride_x, pad_y, pad_x, step_y, step_x, gap_y, gap_x; };
// In elements; `outer` is a batch of images or results, and an output channel of a weight.
struct Steps { int group, outer, inner, row, column; };
struct Tiling { int rows, columns, k_rows, k_columns; };
// Results: group, image, first of outs channels, rows x columns from (y, x) on.
struct Tile { int group, batch, out, y, x, outs, rows, columns; };
// Taps of one channel: k_rows x k_columns from (i, j) on.
struct Taps { int channel, i, j, k_rows, k_columns; };
// Cells [first, last) of an image's row or column, the first of which goes to cell `to` of the patch.
struct Range { int first, last, to; };

inline int at_most(int value, int limit) { return value < limit ? value : limit; }
inline int whole(int value, int part) { return (value + part - 1) / part; }
// One multiplier takes the five products in turn: a place is asked for once a row.
inline int64_t place(Steps s, int group, int outer, int inner, int row, int column) {
#pragma HLS INLINE off
#pragma HLS ALLOCATION operation instances=mul limit=1
    return static_cast<int64_t>(group) * s.group + static_cast<int64_t>(outer) * s.outer +
           static_cast<int64_t>(inner) * s.inner + static_cast<int64_t>(row) * s.row + static_cast<int64_t>(column) * s.column;
}
// Patch cells between the first and the last of `count` pixels and `taps` taps, both counted.
inline int extent(int count, int stride, int taps, int step) { return (count - 1) * stride + (taps - 1) * step + 1; }

// What of `size` elements, gap apart, lies in [start, start + cells).
inline Range inside(int start, int cells, int size, int gap) {
    const int first = start > 0 ? whole(start, gap) : 0;
    const int end = start + cells;
    const int last = at_most(size, end > 0 ? whole(end, gap) : 0);
    return {first, last, first * gap - start};
}

// Step s of a tile: its channel and its taps.
inline Taps taps_of(Size size, Tiling tiling, int s) {
    const int across = whole(size.k_columns, tiling.k_columns), down = whole(size.k_rows, tiling.k_rows);
    const int i = s / across % down * tiling.k_rows, j = s % across * tiling.k_columns;
    return {s / across / down, i, j, at_most(size.k_rows - i, tiling.k_rows), at_most(size.k_columns - j, tiling.k_columns)};
}

// Read the part of a channel that a tile needs. `kept` tells elements from what lies beside them.
template <typename S>
void load_patch(const typename S::Value* image, Steps s, Size size, Window w, Tiling tiling, Tile at, int step,
                typename S::Value patch[S::PATCH], int32_t kept[S::PATCH]) {
// Addresses in pipelines are sums; what a tile and a row begin with shares a multiplier.
#pragma HLS ALLOCATION operation instances=mul limit=1
    const Taps taps = taps_of(size, tiling, step);
    const int rows = extent(at.rows, w.stride_y, taps.k_rows, w.step_y);
    const int columns = extent(at.columns, w.stride_x, taps.k_columns, w.step_x);
    const Range y = inside(at.y * w.stride_y + taps.i * w.step_y - w.pad_y, rows, size.height, w.gap_y);
    const Range x = inside(at.x * w.stride_x + taps.j * w.step_x - w.pad_x, columns, size.width, w.gap_x);
clear_loop:
    for (int cell = 0; cell < rows * columns; ++cell) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::PATCH
        patch[cell] = 0;
        kept[cell] = 0;
    }
row_loop:
    for (int row = y.first; row < y.last; ++row) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
        int64_t from = place(s, at.group, at.batch, taps.channel, row, x.first);
        const int count = x.last - x.first;
        int to = (y.to + (row - y.first) * w.gap_y) * columns + x.to;
        if (s.column == 1) {
        burst_loop:
            for (int column = 0; column < count; ++column, to += w.gap_x) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
                patch[to] = image[from + column];
                kept[to] = -1;
            }
        } else {
        single_loop:
            for (int column = 0; column < count; ++column, to += w.gap_x, from += s.column) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
                patch[to] = image[from];
                kept[to] = -1;
            }
        }
    }
}

// The weights of an output channel: taps that follow each other in memory come in a burst.
template <typename S>
bool load_taps(const typename S::Value* weight, Steps s, Taps taps, int64_t from, typename S::Value row[S::TAPS]) {
    const int count = taps.k_rows * taps.k_columns;
    bool finite = true;
    if (s.column == 1 && s.row == taps.k_columns) {
    burst_loop:
        for (int t = 0; t < count; ++t) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TAPS
            row[t] = weight[from + t];
            finite = finite && row[t] - row[t] == 0;
        }
        return finite;
    }
    int64_t begin = from, place = from;
    int j = 0;
// Taps with gaps between them: single accesses.
single_loop:
    for (int t = 0; t < count; ++t) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TAPS
        row[t] = weight[place];
        finite = finite && row[t] - row[t] == 0;
        place += s.column;
        if (++j == taps.k_columns) {
            j = 0;
            begin += s.row;
            place = begin;
        }
    }
    return finite;
}

// The weights of a tile's output channels; rows of zeros keep the adder busy where they are few.
// `finite` tells whether all are finite numbers.
template <typename S>
void load_weights(const typename S::Value* weight, Steps s, Size size, Tiling tiling, Tile at, int step, int padded,
                  typename S::Value weights[S::OUTS][S::TAPS], bool& finite) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    const Taps taps = taps_of(size, tiling, step);
    bool all = true;
out_loop:
    for (int o = 0; o < at.outs; ++o) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::OUTS
        const int64_t from = place(s, at.group, at.out + o, taps.channel, taps.i, taps.j);
        const bool good = load_taps<S>(weight, s, taps, from, weights[o]);
        all = all && good;
    }
zero_outs:
    for (int o = at.outs; o < padded; ++o) {
#pragma HLS LOOP_TRIPCOUNT min=0 max=8
    zero_taps:
        for (int t = 0; t < taps.k_rows * taps.k_columns; ++t) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TAPS
            weights[o][t] = 0;
        }
    }
    finite = all;
}
}  // namespace conv2d
