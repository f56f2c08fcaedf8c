// Testbench of pool2d_f32: every opcode against loops over the pixels of each window, with gaps in memory.
#include "pool2d_f32.hpp"
#include "../../include/cosim.hpp"
#include "../../include/pool2d_tb.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using namespace pool2d_tb;

static_assert(KIND == 3 && MAX == 0 && AVERAGE == 1 && ADAPTIVE == 2 && BACKWARD == 4 && COUNT_PAD == 8, "the numbers that the driver writes");
static int check(const Case& c) {
    const bool backward = (c.op & BACKWARD) != 0, maxima = (c.op & KIND) == MAX;
    const Axis &rows = c.rows, &cols = c.cols;
    const Layout in(rows.size, cols.size, c.gap), out(rows.out, cols.out, c.gap), place(rows.out, cols.out, 2 * c.gap);
    const float guard = -12345.0f;
    std::vector<float> input(IMAGES * in.image + 1, guard), output(IMAGES * out.image + 1, guard);
    std::vector<float> in_expected(input), out_expected(output);
    std::vector<int64_t> indices(IMAGES * place.image + 1, -7), index_expected(indices);
    cosim::deepen(pool2d_f32_config::COSIM_DEPTH, input, output, indices);
    // Maxima from few values, so that windows have several: the first counts.
    const size_t values = maxima ? 5 : 2001;
    for (size_t i = 0; i < input.size(); ++i) input[i] = static_cast<float>((i * 2654435761u >> 8) % values) / 64.0f - 15.0f;
    if (maxima) input[in.at(0, 1, 2)] = NAN;
    for (int n = 0; n < PLANES * rows.out * cols.out; ++n) {
        const int p = n / cols.out / rows.out, i = n / cols.out % rows.out, j = n % cols.out;
        const Range y = window(c.op, rows, i, false), x = window(c.op, cols, j, false);
        float best = -INFINITY, sum = 0.0f;
        int64_t first = y.first * cols.size + x.first;
        for (int r = y.first; r < y.last; r += rows.step) {
            for (int k = x.first; k < x.last; k += cols.step) {
                const float value = input[in.at(p, r, k)];
                sum += value;
                if (value > best || std::isnan(value)) best = value, first = r * cols.size + k;
            }
        }
        out_expected[out.at(p, i, j)] = maxima ? best : divided(c, sum, i, j);
        if (maxima) index_expected[place.at(p, i, j)] = first;
    }
    if (backward) {
        indices.assign(index_expected.begin(), index_expected.end());
        output.assign(output.size(), guard);
        for (int p = 0; p < PLANES; ++p) {
            for (int i = 0; i < rows.size * cols.size; ++i) in_expected[in.at(p, i / cols.size, i % cols.size)] = 0.0f;
            for (int i = 0, o = 0; i < rows.out; ++i) for (int j = 0; j < cols.out; ++j, ++o) {
                const float gradient = output[out.at(p, i, j)] = static_cast<float>((p * 41 + o) % 37) / 8.0f - 2.0f;
                const Range y = window(c.op, rows, i, false), x = window(c.op, cols, j, false);
                for (int r = y.first; r < y.last; ++r) for (int k = x.first; k < x.last; ++k) {
                    if (maxima && index_expected[place.at(p, i, j)] != r * cols.size + k) continue;
                    in_expected[in.at(p, r, k)] += maxima ? gradient : divided(c, gradient, i, j);
                }
            }
        }
        input.assign(input.size(), guard);
        out_expected = output;
    }
    const Layout &from = backward ? out : in, &to = backward ? in : out;
    std::vector<float> &source = backward ? output : input, &found = backward ? input : output;
    pool2d_f32(source.data(), found.data(), indices.data(), c.op, IMAGES, CHANNELS, rows.size, cols.size, rows.out, cols.out,
        rows.kernel, cols.kernel, rows.stride, cols.stride, rows.pad, cols.pad, rows.step, cols.step, c.divisor, rows.tile,
        cols.tile, from.image, from.plane, from.row, from.col, to.image, to.plane, to.row, to.col, place.image, place.plane,
        place.row, place.col);
    int errors = 0;
    for (size_t i = 0; i < found.size(); ++i) {
        const float expected = backward ? in_expected[i] : out_expected[i];
        if (found[i] == expected || (std::isnan(found[i]) && std::isnan(expected))) continue;
        if (errors++ == 0) std::printf("  first wrong index %zu: %g, expected %g\n", i, found[i], expected);
    }
    for (size_t i = 0; i < indices.size(); ++i) errors += indices[i] != index_expected[i];
    std::printf("pool2d_f32 op=%-2d %dx%d to %dx%d %s\n", c.op, rows.size, cols.size, rows.out, cols.out, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

// One pixel of one image gives itself; where a size is 0, nothing is written.
static int check_sizes() {
    int errors = 0;
    for (int none = 0; none < 9; ++none) {
        int n[] = {1, 1, 1, 1, 1, 1, 1, 1, 1};
        n[none] = 0;  // sizes; the seventh is none; of tiles, which gradients have not
        std::vector<float> input(1, 5.0f), output(2, -1.0f);
        std::vector<int64_t> indices(2, -7);
        cosim::deepen(pool2d_f32_config::COSIM_DEPTH, input, output, indices);
        for (int op : {int(MAX), AVERAGE | BACKWARD}) {
            pool2d_f32(input.data(), output.data(), indices.data(), op, n[0], n[1], n[2], n[3], n[4], n[5], 1, 1, 1, 1, 0, 0, 1, 1,
                0, n[7], n[8], 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1);
            errors += output[0] != (none < 6 || (none > 6 && op == MAX) ? -1.0f : 5.0f) || output[1] != -1.0f;
        }
    }
    std::printf("pool2d_f32 sizes of 0 and 1 %s\n", errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    // opcode (filled in below), divisor, gap; of rows and columns: size, out, kernel, stride, pad, step, tile
    const Case shapes[] = {
        {0, 0, 0, {8, 4, 2, 2, 0, 1, 4}, {8, 4, 2, 2, 0, 1, 4}}, {0, 0, 1, {9, 5, 3, 2, 1, 1, 2}, {13, 6, 4, 2, 1, 1, 3}},
        {0, 5, 2, {11, 9, 3, 1, 0, 1, 4}, {13, 5, 5, 2, 0, 1, 5}}, {0, 0, 1, {70, 36, 2, 2, 1, 1, 7}, {66, 34, 2, 2, 1, 1, 34}},
        {0, 0, 0, {2, 2, 2, 2, 1, 1, 2}, {5, 3, 2, 2, 1, 1, 3}}, {0, 0, 0, {10, 5, 3, 2, 0, 1, 4}, {9, 2, 4, 4, 0, 1, 2}},
        {0, 0, -1, {9, 5, 3, 2, 1, 1, 2}, {13, 6, 4, 2, 1, 1, 3}},  // gaps behind rows, and none in them
        {0, 0, 1, {2, 2, 1, 1, 0, 1, 1}, {TILE + 6, TILE + 6, 1, 1, 0, 1, 600}}};
    // With dilation, which averages have not; in the second, windows step over the padding.
    int errors = check_sizes() + check({MAX, 0, 1, {17, 5, 3, 3, 1, 2, 2}, {16, 8, 2, 2, 1, 3, 2}}) + check({MAX, 0, 0, {17, 9, 5, 1, 2, 3, 4}, {19, 11, 5, 1, 2, 3, 11}});
    for (Case c : shapes) {
        for (int op : {int(MAX), int(AVERAGE), AVERAGE | COUNT_PAD, int(ADAPTIVE), MAX | BACKWARD, AVERAGE | BACKWARD,
                       AVERAGE | BACKWARD | COUNT_PAD, ADAPTIVE | BACKWARD}) {
            c.op = op;
            errors += check(c);
        }
    }
    return errors == 0 ? 0 : 1;
}
