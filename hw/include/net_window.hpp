// Windows of kernel net: convolution, maximum and mean, a tile of results at a time.
//
// OUTS channels of the result and PIXELS of its pixels are kept on chip. For each channel of the image and each row
// of the window, the lines that the tile needs are read into `patch`; what lies beside the image is the zero point
// (for a maximum, -128). Each cell is then multiplied with the weights of OUTS channels in one cycle.
#pragma once
#include "net_store.hpp"

namespace networks {
// Channels from `out` on, rows x columns from (y, x) on; `cells` of a line in the patch.
struct Tile { int group, out, outs, y, x, rows, columns, cells; };

inline int at_most(int value, int limit) { return value < limit ? value : limit; }

// The size of the tiles; those at the edges are smaller.
inline Tile largest_tile(const Instruction& in) {
    const int span = (in.k_columns - 1) * in.step_x + 1;
    const int columns = at_most((PATCH - span) / in.stride_x + 1, at_most(in.columns, PIXELS));
    const int cells = (columns - 1) * in.stride_x + span;
    return {0, 0, 0, 0, 0, at_most(in.rows, at_most(PIXELS / columns, PATCH / cells)), columns, cells};
}

// Row i of the window, for all rows of the tile.
inline void load_patch(const int8_t* arena, const Instruction& in, Tile at, int channel, int i, int8_t patch[PATCH]) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    const int8_t beside = static_cast<int8_t>(in.opcode == MAX ? -128 : in.x_zero);
    const int left = at.x * in.stride_x - in.pad_x;
    const int first = left < 0 ? -left : 0;
    const int last = at_most(in.width - left, at.cells);
    int to = 0;
line_loop:
    for (int r = 0; r < at.rows; ++r, to += at.cells) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=32
        const int y = (at.y + r) * in.stride_y + i * in.step_y - in.pad_y;
        const bool there = y >= 0 && y < in.height;
        const uint32_t from = in.x.first + channel * in.x.channel + y * in.x.row + left;
    clear_loop:
        for (int c = 0; c < at.cells; ++c) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=34
            patch[to + c] = beside;
        }
        if (!there) continue;
    burst_loop:
        for (int c = first; c < last; ++c) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=34
            patch[to + c] = arena[from + c];
        }
    }
}

// The weights of row i of the window; in memory they have the order in which they are used.
inline void load_weights(const int8_t* weights, const Instruction& in, Tile at, int channel, int i, int8_t taps[TAPS][OUTS]) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    const int depth = in.channels / in.groups, window = in.k_rows * in.k_columns;
    uint32_t from = in.weights + (at.group * (in.outs / in.groups) + at.out) * depth * window + (channel * in.k_rows + i) * in.k_columns * at.outs;
tap_loop:
    for (int j = 0; j < in.k_columns; ++j) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=3
        const int count = in.opcode == CONV ? at.outs : 0;
    weight_burst:
        for (int o = 0; o < count; ++o) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=0 max=OUTS
            taps[j][o] = weights[from + o];
        }
    rest_loop:
        for (int o = count; o < OUTS; ++o) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=0 max=OUTS
            taps[j][o] = o < at.outs;
        }
        from += count;
    }
}

// One cell for each pixel of the tile, with the weights of all its channels.
template <bool MAXIMUM>
void add_tap(const int8_t patch[PATCH], const int8_t taps[TAPS][OUTS], const Instruction& in, Tile at, int j, int32_t sums[PIXELS][OUTS]) {
    int32_t weight[OUTS];
#pragma HLS ARRAY_PARTITION variable=weight type=complete
weight_loop:
    for (int o = 0; o < OUTS; ++o) weight[o] = taps[j][o];
    const int count = at.rows * at.columns, stride = in.stride_x, begin = j * in.step_x;
    int x = 0, line = begin, cell = begin;
pixel_loop:
    for (int p = 0; p < count; ++p) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=PIXELS
// A sum is met again with the next tap, in another call.
#pragma HLS DEPENDENCE variable=sums type=inter dependent=false
        const int32_t value = patch[cell];
    out_loop:
        for (int o = 0; o < OUTS; ++o) {
#pragma HLS UNROLL
            if (MAXIMUM) sums[p][o] = value > sums[p][o] ? value : sums[p][o];
            else sums[p][o] += weight[o] * value;
        }
        cell += stride;
        if (++x == at.columns) {
            x = 0;
            line += at.cells;
            cell = line;
        }
    }
}

inline void sum_tile(const int8_t* arena, const int8_t* weights, const Instruction& in, Tile at, int32_t sums[PIXELS][OUTS]) {
    int8_t patch[PATCH], taps[TAPS][OUTS];
#pragma HLS ARRAY_PARTITION variable=taps type=complete dim=2
    const int depth = in.channels / in.groups, count = at.rows * at.columns;
    const int32_t least = in.opcode == MAX ? -128 : 0;
clear_loop:
    for (int p = 0; p < count; ++p) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=PIXELS
        for (int o = 0; o < OUTS; ++o) sums[p][o] = least;
    }
channel_loop:
    for (int channel = 0; channel < depth; ++channel) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
    row_loop:
        for (int i = 0; i < in.k_rows; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=3
            load_patch(arena, in, at, at.group * depth + channel, i, patch);
            load_weights(weights, in, at, channel, i, taps);
        column_loop:
            for (int j = 0; j < in.k_columns; ++j) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=3
                if (in.opcode == MAX) add_tap<true>(patch, taps, in, at, j, sums);
                else add_tap<false>(patch, taps, in, at, j, sums);
            }
        }
    }
}

inline void windows(const int8_t* weights, const int32_t* table, int8_t* arena, const Instruction& in) {
    int32_t sums[PIXELS][OUTS];
#pragma HLS ARRAY_PARTITION variable=sums type=complete dim=2
    const Tile largest = largest_tile(in);
    const int outs = in.outs / in.groups;
group_loop:
    for (int group = 0; group < in.groups; ++group) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
    out_loop:
        for (int out = 0; out < outs; out += OUTS) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=4
        down_loop:
            for (int y = 0; y < in.rows; y += largest.rows) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=4
            across_loop:
                for (int x = 0; x < in.columns; x += largest.columns) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=4
                    const Tile at = {group, out, at_most(outs - out, OUTS), y, x, at_most(in.rows - y, largest.rows),
                                     at_most(in.columns - x, largest.columns), largest.cells};
                    sum_tile(arena, weights, in, at, sums);
                    store_tile(sums, table, arena, in, group * outs + out, at.outs, y, x, at.rows, at.columns);
                }
            }
        }
    }
}
}  // namespace networks
