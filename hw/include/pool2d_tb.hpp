// What the testbench of pool2d_f32 compares with: planes in memory, windows, and what an average divides by.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstdlib>

#include "pool2d.hpp"

namespace pool2d_tb {
using namespace pool2d;

struct Case { int op, divisor, gap; Axis rows, cols; };

constexpr int IMAGES = 2, CHANNELS = 3, PLANES = IMAGES * CHANNELS;
// Planes in memory, with `gap` elements behind every pixel, row, plane and image; none behind pixels where it is negative.
struct Layout {
    int col, row, plane, image;
    Layout(int rows, int cols, int gap)
        : col(1 + std::max(gap, 0)), row(cols * col + std::abs(gap)), plane(rows * row + std::abs(gap)),
          image(CHANNELS * plane + std::abs(gap)) {}
    size_t at(int p, int r, int c) const { return p / CHANNELS * image + p % CHANNELS * plane + r * row + c * col; }
};

// First pixel of window i and the one behind its last, clipped to the image; `with_pad` clips to the padding.
struct Range { int first, last; };
inline Range window(int op, const Axis& a, int i, bool with_pad) {
    if ((op & KIND) == ADAPTIVE) return {i * a.size / a.out, (i * a.size + a.size + a.out - 1) / a.out};
    int first = i * a.stride - a.pad;
    const int last = std::min(first + (a.kernel - 1) * a.step + 1, with_pad ? a.size + a.pad : a.size);
    if (!with_pad) while (first < 0) first += a.step;
    return {first, last};
}

inline float divided(const Case& c, float sum, int i, int j) {
    const bool padded = (c.op & COUNT_PAD) != 0;
    const Range y = window(c.op, c.rows, i, padded), x = window(c.op, c.cols, j, padded);
    const int high = y.last - y.first, wide = x.last - x.first;
    if ((c.op & KIND) == ADAPTIVE) return sum / static_cast<float>(high) / static_cast<float>(wide);
    return sum / static_cast<float>(c.divisor ? c.divisor : high * wide);
}
}  // namespace pool2d_tb
