// What the testbench of net compares with: programs of one instruction, and plain loops.
#pragma once
#include <cmath>
#include <vector>

#include "net_window.hpp"

namespace net_tb {
using namespace networks;

inline int noise(unsigned int i) { return static_cast<int>((2654435761u * (i + 1)) >> 24) - 128; }
inline float multiplier(int c) { return 0.0005f * static_cast<float>(c % 5 + 1); }

// Of a convolution that ends in an addition: zero point and bounds of what is added.
constexpr int BEFORE = -9, LEAST = -60, MOST = 90;
constexpr int32_t NUMBERS = (BEFORE & 0xff) | (LEAST & 0xff) << 8 | (MOST & 0xff) << 16;

struct Window { int taps_y, taps_x, stride, pad, step; };
struct Case { int opcode, flags, groups, channels, outs, height, width; Window w; int low, high; };

// The words of an instruction, its tensors one after the other with a guard of 16 bytes before each.
struct Program {
    std::vector<uint32_t> words;
    int rows, columns, arena;
    explicit Program(const Case& c) : words(2 * WORDS, 0) {
        rows = (c.height + 2 * c.w.pad - (c.w.taps_y - 1) * c.w.step - 1) / c.w.stride + 1;
        columns = (c.width + 2 * c.w.pad - (c.w.taps_x - 1) * c.w.step - 1) / c.w.stride + 1;
        const int size = c.flags & FLOAT ? 4 : 1, x = 16, b = x + c.channels * c.height * c.width + 16;
        const bool adds = (c.flags & SUM) != 0;
        const int plane = adds ? rows * columns : c.height * c.width, line = adds ? columns : c.width;
        const int y = (b + (adds ? c.outs : c.channels) * plane + 16 + 3) / 4 * 4;
        arena = y + c.outs * rows * columns * size + 16;
        const int word[WORDS] = {VERSION << 24 | c.flags << 8 | c.opcode, x, c.height * c.width, c.width, y, rows * columns * size,
                                 columns * size, c.channels, c.height, c.width, c.outs, rows, columns, c.groups, c.w.taps_y, c.w.taps_x,
                                 c.w.stride, c.w.stride, c.w.pad, c.w.pad, c.w.step, c.w.step, 0, 0, 3, -7, c.low, c.high, b,
                                 plane, line, -2};
        for (int i = 0; i < WORDS; ++i) words[i] = static_cast<uint32_t>(word[i]);
        words[WORDS] = VERSION << 24 | END;
    }
};

inline float golden(const Case& c, const Program& p, const std::vector<int8_t>& arena, const std::vector<int8_t>& weights,
                    const std::vector<int32_t>& tables, int out, int y, int x) {
    const uint32_t* w = p.words.data();
    const int plane = c.height * c.width, depth = c.channels / c.groups, per = c.outs / c.groups, group = out / per, o = out % per;
    if (c.opcode == ADD) {
        const float left = static_cast<float>(arena[w[1] + out * plane + y * c.width + x] - 3) * as_float(tables[0]);
        const float right = static_cast<float>(arena[w[28] + out * plane + y * c.width + x] + 2) * as_float(tables[1]);
        return left + right;
    }
    const int block = o / OUTS * OUTS, lanes = per - block < OUTS ? per - block : OUTS, window = c.w.taps_y * c.w.taps_x;
    int sum = c.opcode == MAX ? -128 : tables[c.opcode == CONV ? 2 * out : 0];
    for (int d = 0; d < depth; ++d) {
        for (int i = 0; i < c.w.taps_y; ++i) {
            for (int j = 0; j < c.w.taps_x; ++j) {
                const int row = y * c.w.stride + i * c.w.step - c.w.pad, column = x * c.w.stride + j * c.w.step - c.w.pad;
                const bool there = row >= 0 && row < c.height && column >= 0 && column < c.width;
                const int value = there ? arena[w[1] + (group * depth + d) * plane + row * c.width + column] : c.opcode == MAX ? -128 : 3;
                if (c.opcode == MAX) sum = value > sum ? value : sum;
                else sum += value * (c.opcode == MEAN ? 1 : weights[(group * per + block) * depth * window + ((d * c.w.taps_y + i) * c.w.taps_x + j) * lanes + o - block]);
            }
        }
    }
    if (c.opcode == MAX) return static_cast<float>(sum + 7);
    const float value = static_cast<float>(sum) * as_float(tables[c.opcode == CONV ? 2 * out + 1 : 1]);
    if ((c.flags & SUM) == 0) return value;
    const float left = std::fmax(LEAST, std::fmin(MOST, std::nearbyint(value) + BEFORE));
    const float right = static_cast<float>(arena[w[28] + (out * p.rows + y) * p.columns + x] + 2);
    return (left - BEFORE) * as_float(tables[2 * c.outs]) + right * as_float(tables[2 * c.outs + 1]);
}
}  // namespace net_tb
