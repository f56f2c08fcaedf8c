// What the testbenches of conv2d share: cases, a plan of tiles, and plain loops to compare with.
#pragma once
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "conv2d_store.hpp"

namespace conv2d_tb {
using namespace conv2d;
static_assert(BIAS == 4 && RELU == 8, "the numbers that the driver writes");
struct Case { Size size; Window window; };
// groups batch channels outs, height width, rows columns, taps; stride, pad, step, gap
constexpr Case CASES[] = {
    {{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, {1, 1, 0, 0, 1, 1, 1, 1}},
    {{1, 2, 3, 6, 28, 28, 28, 28, 5, 5}, {1, 1, 2, 2, 1, 1, 1, 1}},
    {{2, 1, 3, 40, 9, 11, 5, 4, 3, 4}, {2, 3, 1, 2, 1, 1, 1, 1}},
    {{3, 2, 1, 2, 12, 10, 10, 6, 2, 3}, {1, 1, 1, 0, 3, 2, 1, 1}},
    {{1, 1, 4, 5, 6, 5, 13, 16, 3, 3}, {1, 1, 1, -1, 1, 1, 2, 3}},
    {{1, 2, 3, 4, 33, 20, 5, 5, 29, 16}, {1, 1, 0, 0, 1, 1, 1, 1}},
    {{1, 1, 2, 3, 4, 300, 5, 298, 3, 3}, {1, 1, 1, 0, 1, 1, 1, 1}},
    {{1, 1, 1, 2, 40, 40, 2, 2, 2, 3}, {5, 7, 3, 0, 30, 14, 1, 1}},
    {{1, 1, 2, 1, 3, 3, 4, 4, 5, 200}, {1, 1, 5, 150, 1, 2, 1, 1}},
    {{1, 1, 1, 1, 64, 64, 2, 2, 1, 1}, {63, 63, 0, 0, 1, 1, 1, 1}},  // 64 x 64 cells: the patch is full
    {{1, 1, 1, 1, 64, 128, 2, 2, 1, 1}, {63, 127, 0, 0, 1, 1, 1, 1}},
};

// Halve the longer side until a tile fits; kernels are asked to take such a plan.
inline Tiling plan(Case c, int pixels, int patch, int taps) {
    Tiling t;
    t.k_columns = at_most(c.size.k_columns, taps);
    t.k_rows = at_most(c.size.k_rows, taps / t.k_columns);
    t.columns = at_most(c.size.columns, pixels);
    t.rows = at_most(c.size.rows, pixels / t.columns);
    for (;;) {
        const int y = extent(t.rows, c.window.stride_y, t.k_rows, c.window.step_y);
        const int x = extent(t.columns, c.window.stride_x, t.k_columns, c.window.step_x);
        if (y * x <= patch) return t;
        int& size = y >= x ? (t.rows * c.window.stride_y >= t.k_rows * c.window.step_y && t.rows > 1 ? t.rows : t.k_rows)
                           : (t.columns > 1 ? t.columns : t.k_columns);
        size = (size + 1) / 2;
    }
}

// A plan for the depthwise kernels, whose patch has rows and columns; none where the weight exceeds it.
inline Tiling plan_depthwise(Case c, int pixels, int rows, int width) {
    const Window& w = c.window;
    const int down = (rows - 1 - (c.size.k_rows - 1) * w.step_y) / w.stride_y + 1;
    const int across = (width - 1 - (c.size.k_columns - 1) * w.step_x) / w.stride_x + 1;
    Tiling t = {0, at_most(at_most(c.size.columns, across), pixels), c.size.k_rows, c.size.k_columns};
    if (t.columns > 0) t.rows = at_most(at_most(c.size.rows, down), pixels / t.columns);
    return t;
}

// The same case with a channel a group and no gaps.
inline Case depthwise(Case c) {
    c.size.groups *= c.size.channels;
    c.size.channels = 1;
    c.window.gap_y = c.window.gap_x = 1;
    return c;
}

// Bits of the mode decide how the elements lie, too: side by side or in twos, rows with a gap or without.
struct Layout {
    Steps steps;
    size_t count;
    Layout(int groups, int outer, int inner, int rows, int columns, int mode) {
        const int column = mode & 4 ? 1 : 2, row = columns * column + (mode & 8 ? 0 : 2);
        steps = {outer * inner * rows * row, inner * rows * row, rows * row, row, column};
        count = static_cast<size_t>(groups) * steps.group + 1;
    }
};

inline uint32_t next(uint32_t& state) { return state = state * 1664525u + 1013904223u; }

// The sum for one pixel in double, and the sum of magnitudes.
template <typename T>
double exact(const std::vector<T>& image, Steps si, const std::vector<T>& weight, Steps sw, Case c, int g, int n, int o,
             int y, int x, double& size) {
    const Window& w = c.window;
    double sum = 0;
    size = 0;
    for (int ch = 0; ch < c.size.channels; ++ch) {
        for (int i = 0; i < c.size.k_rows; ++i) {
            for (int j = 0; j < c.size.k_columns; ++j) {
                const int v = y * w.stride_y + i * w.step_y - w.pad_y, u = x * w.stride_x + j * w.step_x - w.pad_x;
                if (v < 0 || u < 0 || v % w.gap_y || u % w.gap_x || v / w.gap_y >= c.size.height || u / w.gap_x >= c.size.width) continue;
                const double product = static_cast<double>(image[place(si, g, n, ch, v / w.gap_y, u / w.gap_x)]) * weight[place(sw, g, o, ch, i, j)];
                sum += product;
                size += std::fabs(product);
            }
        }
    }
    return sum;
}

// The job of a case as the words that the kernel reads, and no word more.
inline std::vector<int32_t> job_of(Case c, Steps si, Steps sw, Steps sr, Tiling t, int mode) {
    const Size& s = c.size;
    const Window& w = c.window;
    return {s.groups, s.batch, s.channels, s.outs, s.height, s.width, s.rows, s.columns, s.k_rows, s.k_columns,
            w.stride_y, w.stride_x, w.pad_y, w.pad_x, w.step_y, w.step_x, w.gap_y, w.gap_x,
            si.group, si.outer, si.inner, si.row, si.column,
            sw.group, sw.outer, sw.inner, sw.row, sw.column,
            sr.group, sr.outer, sr.inner, sr.row, sr.column,
            t.rows, t.columns, t.k_rows, t.k_columns, mode};
}
}  // namespace conv2d_tb
