// From sums to the arena: bias, multiplier, zero point, bounds; and the sum of two tensors, or of what a convolution
// gives and a tensor.
#pragma once
#include "net_program.hpp"

namespace networks {
constexpr int OUTS = 16;     // output channels that are worked on at a time: products a cycle
constexpr int PIXELS = 256;  // and pixels

union Word { int32_t bits; float value; };
inline float as_float(int32_t bits) { Word word; word.bits = bits; return word.value; }
inline int32_t as_bits(float value) { Word word; word.value = value; return word.bits; }

struct Bounds { float lowest, highest; int zero; };
inline Bounds bounds_from(int zero, int low, int high) { return {static_cast<float>(low - zero), static_cast<float>(high - zero), zero}; }
inline Bounds bounds_of(const Instruction& in) { return bounds_from(in.opcode == MAX ? 0 : in.y_zero, in.low, in.high); }

// Of a convolution that ends in an addition: the multipliers of both operands, and the int8 between the two.
struct Sum { float left, right; Bounds before; };
inline Sum sum_of(const int32_t* table, const Instruction& in) {
    const uint32_t from = in.table + 2 * in.outs;
    const uint32_t numbers = static_cast<uint32_t>(table[from + 2]);
    return {as_float(table[from]), as_float(table[from + 1]),
            bounds_from(static_cast<int8_t>(numbers & 0xff), static_cast<int8_t>(numbers >> 8 & 0xff), static_cast<int8_t>(numbers >> 16 & 0xff))};
}

// clamp(rne(value) + zero). Cutting off first gives the same, since the bounds are whole numbers, and leaves values
// small enough for the oldest way to round: beside 1.5 * 2^23 a float has no bits for a fraction.
inline int32_t to_int8(float value, Bounds to) {
#pragma HLS INLINE
    const float cut = value > to.highest ? to.highest : value >= to.lowest ? value : to.lowest;  // NaN ends at the lower bound
    return as_bits(cut + 12582912.0f) - as_bits(12582912.0f) + to.zero;
}

// One row of results: `bits` are int8 values, or float32 where the instruction says so.
inline void store_line(const int32_t bits[PIXELS], int8_t* arena, uint32_t to, int count, bool whole) {
    if (whole) {
    float_loop:
        for (int c = 0; c < 4 * count; ++c) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=4 max=128
            arena[to + c] = static_cast<int8_t>(bits[c >> 2] >> 8 * (c & 3));
        }
    } else {
    byte_loop:
        for (int c = 0; c < count; ++c) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=32
            arena[to + c] = static_cast<int8_t>(bits[c]);
        }
    }
}

// A tile of sums, channels from `out` on, rows x columns from (y, x) on.
inline void store_tile(const int32_t sums[PIXELS][OUTS], const int32_t* table, int8_t* arena, const Instruction& in, int out, int outs,
                       int y, int x, int rows, int columns) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    const bool whole = (in.flags & FLOAT) != 0, adds = (in.flags & SUM) != 0, scaled = in.opcode != MAX;
    const Bounds bounds = bounds_of(in);
    const Sum sum = adds ? sum_of(table, in) : Sum{0.0f, 0.0f, bounds};
channel_loop:
    for (int o = 0; o < outs; ++o) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=OUTS
        const uint32_t entry = in.table + (in.opcode == CONV ? 2 * (out + o) : 0);
        const uint32_t bias = scaled ? static_cast<uint32_t>(table[entry]) : 0u;
        const float factor = scaled ? as_float(table[entry + 1]) : 1.0f;
        int first = 0;
    row_loop:
        for (int r = 0; r < rows; ++r, first += columns) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=32
            int32_t line[PIXELS];
            const uint32_t at = (out + o) * in.y.channel + (y + r) * in.y.row + (whole ? 4 * x : x);
        finish_loop:
            for (int c = 0; c < columns; ++c) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=32
                const int32_t acc = static_cast<int32_t>(static_cast<uint32_t>(sums[first + c][o]) + bias);
                const float value = static_cast<float>(acc) * factor;
                line[c] = whole ? as_bits(value) : to_int8(value, sum.before);
            }
            if (adds) {
            sum_loop:
                for (int c = 0; c < columns; ++c) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=32
                    const float left = static_cast<float>(line[c] - sum.before.zero) * sum.left;
                    const float right = static_cast<float>(arena[in.b.first + at + c] - in.b_zero) * sum.right;
                    line[c] = to_int8(left + right, bounds);
                }
            }
            store_line(line, arena, in.y.first + at, columns, whole);
        }
    }
}

// y = clamp(rne(float32(x - x_zero) * m_x + float32(b - b_zero) * m_b) + y_zero), each step rounded once.
inline void add(const int32_t* table, int8_t* arena, const Instruction& in) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    const Bounds bounds = bounds_of(in);
    const int x_zero = in.x_zero, b_zero = in.b_zero;
    const float m_x = as_float(table[in.table]), m_b = as_float(table[in.table + 1]);
channel_loop:
    for (int channel = 0; channel < in.channels; ++channel) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
    row_loop:
        for (int y = 0; y < in.height; ++y) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=32
            const uint32_t x_from = in.x.first + channel * in.x.channel + y * in.x.row;
            const uint32_t b_from = in.b.first + channel * in.b.channel + y * in.b.row;
            const uint32_t to = in.y.first + channel * in.y.channel + y * in.y.row;
        part_loop:
            for (int part = 0; part < in.width; part += PIXELS) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1
                int8_t x_line[PIXELS];
                int32_t line[PIXELS];
                const int count = in.width - part < PIXELS ? in.width - part : PIXELS;
            x_loop:
                for (int c = 0; c < count; ++c) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=32
                    x_line[c] = arena[x_from + part + c];
                }
            b_loop:
                for (int c = 0; c < count; ++c) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=32
                    const float left = static_cast<float>(x_line[c] - x_zero) * m_x;
                    const float right = static_cast<float>(arena[b_from + part + c] - b_zero) * m_b;
                    line[c] = to_int8(left + right, bounds);
                }
                store_line(line, arena, to + part, count, false);
            }
        }
    }
}
}  // namespace networks
