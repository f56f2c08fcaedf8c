// Testbench of pool2d_f32: every opcode against loops over the pixels of each window, with gaps in memory.
#include "pool2d_f32.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using namespace pool2d;

struct Case { int op, rows, cols, out_rows, out_cols, kernel, stride, pad, step, divisor, tile_rows, tile_cols, gap; };

static const int IMAGES = 2, CHANNELS = 3;

// First pixel of window i and the one behind its last, clipped to the image; `with_pad` clips to the padding.
static void window(const Case& c, int size, int out, int i, bool with_pad, int& first, int& last) {
    first = (c.op & KIND) == ADAPTIVE ? i * size / out : i * c.stride - c.pad;
    last = (c.op & KIND) == ADAPTIVE ? (i * size + size + out - 1) / out : first + (c.kernel - 1) * c.step + 1;
    const int limit = with_pad ? size + c.pad : size;
    if (last > limit) last = limit;
    if (!with_pad) while (first < 0) first += c.step;
}

static float divided(const Case& c, float sum, int i, int j) {
    int a, b, d, e;
    const bool padded = (c.op & COUNT_PAD) != 0;
    window(c, c.rows, c.out_rows, i, padded, a, b);
    window(c, c.cols, c.out_cols, j, padded, d, e);
    if ((c.op & KIND) == ADAPTIVE) return sum / static_cast<float>(b - a) / static_cast<float>(e - d);
    return sum / static_cast<float>(c.divisor ? c.divisor : (b - a) * (e - d));
}

static int check(const Case& c) {
    const bool backward = (c.op & BACKWARD) != 0, maxima = (c.op & KIND) == MAX;
    const int in_col = 1 + c.gap, in_row = c.cols * in_col + c.gap, in_plane = c.rows * in_row + c.gap;
    const int out_plane = c.out_rows * c.out_cols, planes = IMAGES * CHANNELS, depth = pool2d_f32_config::COSIM_DEPTH;
    const int in_count = planes * in_plane, out_count = planes * out_plane;
    const float guard = -12345.0f;
    std::vector<float> input(in_count > depth ? in_count : depth, guard), output(out_count > depth ? out_count : depth, guard);
    std::vector<int64_t> indices(output.size(), -7);
    std::vector<float> in_expected(input), out_expected(output);
    std::vector<int64_t> index_expected(indices);
    // Maxima from few values, so that windows have several: the first counts.
    const size_t values = maxima ? 5 : 2001;
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>((i * 2654435761u >> 8) % values) / 64.0f - 15.0f;
    if (maxima) input[in_row + 2 * in_col] = NAN;
    for (int p = 0; p < planes; ++p) {
        for (int i = 0; i < c.out_rows; ++i) {
            for (int j = 0; j < c.out_cols; ++j) {
                const int o = p * out_plane + i * c.out_cols + j;
                int r0, r1, c0, c1;
                window(c, c.rows, c.out_rows, i, false, r0, r1);
                window(c, c.cols, c.out_cols, j, false, c0, c1);
                float best = -INFINITY, sum = 0.0f;
                int64_t place = r0 * c.cols + c0;
                for (int r = r0; r < r1; r += c.step) {
                    for (int k = c0; k < c1; k += c.step) {
                        const float x = input[p * in_plane + r * in_row + k * in_col];
                        sum += x;
                        if (x > best || std::isnan(x)) { best = x; place = r * c.cols + k; }
                    }
                }
                out_expected[o] = maxima ? best : divided(c, sum, i, j);
                if (maxima) index_expected[o] = place;
            }
        }
    }
    if (backward) {
        indices = index_expected;
        for (int p = 0; p < planes; ++p) {
            for (int r = 0; r < c.rows; ++r) for (int k = 0; k < c.cols; ++k) in_expected[p * in_plane + r * in_row + k * in_col] = 0.0f;
            for (int o = 0; o < out_plane; ++o) {
                const int i = o / c.out_cols, j = o % c.out_cols, at = p * out_plane + o;
                output[at] = static_cast<float>(at % 37) / 8.0f - 2.0f;
                int r0, r1, c0, c1;
                window(c, c.rows, c.out_rows, i, false, r0, r1);
                window(c, c.cols, c.out_cols, j, false, c0, c1);
                for (int r = r0; r < r1; ++r) {
                    for (int k = c0; k < c1; ++k) {
                        if (maxima && indices[at] != r * c.cols + k) continue;
                        in_expected[p * in_plane + r * in_row + k * in_col] += maxima ? output[at] : divided(c, output[at], i, j);
                    }
                }
            }
        }
        input.assign(input.size(), guard);
    }
    const int in_image = CHANNELS * in_plane, out_image = CHANNELS * out_plane;
    const bool b = backward;
    pool2d_f32(b ? output.data() : input.data(), b ? input.data() : output.data(), indices.data(), c.op, IMAGES, CHANNELS,
        c.rows, c.cols, c.out_rows, c.out_cols, c.kernel, c.kernel, c.stride, c.stride, c.pad, c.pad, c.step, c.step,
        c.divisor, c.tile_rows, c.tile_cols, b ? out_image : in_image, b ? out_plane : in_plane, b ? c.out_cols : in_row,
        b ? 1 : in_col, b ? in_image : out_image, b ? in_plane : out_plane, b ? in_row : c.out_cols, b ? in_col : 1,
        out_image, out_plane, c.out_cols, 1);
    int errors = 0;
    const std::vector<float>& found = backward ? input : output;
    const std::vector<float>& expected = backward ? in_expected : out_expected;
    for (size_t i = 0; i < found.size(); ++i) {
        if (found[i] == expected[i] || (std::isnan(found[i]) && std::isnan(expected[i]))) continue;
        if (errors++ == 0) std::printf("  first wrong index %zu: %g, expected %g\n", i, found[i], expected[i]);
    }
    for (size_t i = 0; i < indices.size(); ++i) errors += indices[i] != index_expected[i];
    std::printf("pool2d_f32 op=%-2d %dx%d to %dx%d %s\n", c.op, c.rows, c.cols, c.out_rows, c.out_cols, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    const Case shapes[] = {  // the opcode is filled in below
        {0, 8, 8, 4, 4, 2, 2, 0, 1, 0, 4, 4, 0}, {0, 9, 7, 5, 4, 3, 2, 1, 1, 0, 2, 3, 1}, {0, 11, 13, 9, 11, 3, 1, 0, 1, 5, 4, 11, 2},
        {0, 70, 66, 36, 34, 2, 2, 1, 1, 0, 7, 34, 1}, {0, 2, 5, 2, 3, 2, 2, 1, 1, 0, 2, 3, 0}};
    // With dilation, which averages have not; in the second, windows step over the padding.
    int errors = check({MAX, 17, 17, 5, 5, 3, 3, 1, 2, 0, 2, 2, 1}) + check({MAX, 17, 17, 9, 9, 5, 1, 2, 3, 0, 4, 9, 0});
    for (Case c : shapes) {
        for (int op : {int(MAX), int(AVERAGE), AVERAGE | COUNT_PAD, int(ADAPTIVE), MAX | BACKWARD, AVERAGE | BACKWARD, ADAPTIVE | BACKWARD}) {
            c.op = op;
            errors += check(c);
        }
    }
    return errors == 0 ? 0 : 1;
}
