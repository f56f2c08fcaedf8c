// Testbench of reduce_f32: every operation against double, rows and columns, around tile and block.
#include "reduce_f32.hpp"
#include "../../include/cosim.hpp"
#include "../../include/reduce_tb.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using reduce_f32_config::Shape;
using namespace reduce_tb;
static_assert(Shape::SAME == 0 && Shape::MAGNITUDE == 1 && Shape::SQUARE == 2 && Shape::NONZERO == 3 && Shape::POWER == 4 &&
              Shape::DEVIATION == 5 && Shape::ADD == 0 && Shape::MULTIPLY == 1 && Shape::MAX == 2 && Shape::MIN == 3 &&
              Shape::ARGMAX == 4 && Shape::ARGMIN == 5 && Shape::KEEP == 0 && Shape::DIVIDE == 1 &&
              Shape::ROOT_OF_MEAN == 2 && Shape::ROOT == 3, "the numbers that the driver writes");

namespace {
int check(Operation op, const Size& s, bool column) {
    const Layout l(s, column);
    const float divisor = static_cast<float>(s.r[0] * s.r[1] * s.r[2]), p = 3.0f, guard = -77.0f;
    std::vector<float> x(l.x_count), y(l.y_count + 1, guard);
    std::vector<int64_t> index(l.y_count + 1, -77);
    cosim::deepen(reduce_f32_config::COSIM_DEPTH, x, y, index);
    // Products stay near 1; extremes come twice, so that the first counts; plain sums are exact in
    // float32, so that no term can hide in what rounding is allowed.
    const bool exact = op.term == Shape::SAME && op.combine == Shape::ADD;
    for (int i = 0; i < l.x_count; ++i)
        x[i] = op.combine == Shape::MULTIPLY ? 1.0f + static_cast<float>(i % 7 - 3) / 1024.0f
               : exact                       ? static_cast<float>(i * 37 % 501 - 125)
                                             : static_cast<float>(i * 37 % 501) / 25.0f - 5.0f;
    if (s.gap && op.combine >= Shape::MAX) x[l.r[2]] = x[s.r[1] > 1 ? l.r[1] : l.r[2]] = NAN;  // of the first result
    reduce_f32(x.data(), y.data(), index.data(), op.term, op.combine, op.finish, s.k[0], s.k[1], s.k[2], s.r[0], s.r[1],
               s.r[2], l.k[0], l.k[1], l.k[2], l.r[0], l.r[1], l.r[2], l.y[0], l.y[1], l.y[2], column, divisor, p);
    int errors = 0;
    for (int k = 0; divisor > 0 && k < s.k[0] * s.k[1] * s.k[2]; ++k) {
        const int k0 = k / s.k[2] / s.k[1], k1 = k / s.k[2] % s.k[1], k2 = k % s.k[2];
        const int from = k0 * l.k[0] + k1 * l.k[1] + k2 * l.k[2], at = k0 * l.y[0] + k1 * l.y[1] + k2 * l.y[2];
        std::vector<double> values;
        for (int a = 0; a < s.r[0]; ++a)
            for (int b = 0; b < s.r[1]; ++b)
                for (int c = 0; c < s.r[2]; ++c) values.push_back(x[from + a * l.r[0] + b * l.r[1] + c * l.r[2]]);
        int place = 0;
        const double want = expected<Shape>(op, values, divisor, p, place);
        const double room = exact ? 1e-7 * std::fabs(want) : 2e-5 * std::fabs(want);  // exact: but for the division
        const bool near = std::isnan(want) ? std::isnan(y[at]) : std::fabs(y[at] - want) <= room;
        const bool placed = index[at] == (op.combine < Shape::ARGMAX ? -77 : place);
        if (!(near && placed) && errors++ == 0)
            std::printf("  first wrong result %d: %g at %d, expected %g at %d\n", k, y[at], int(index[at]), want, place);
        y[at] = guard;
        index[at] = -77;
    }
    for (float value : y) errors += value != guard;
    for (int64_t value : index) errors += value != -77;
    std::printf("op=%d,%d,%d %d x %d %-6s %s\n", op.term, op.combine, op.finish, s.k[0] * s.k[1] * s.k[2], int(divisor),
                column ? "column" : "row", errors == 0 ? "PASS" : "FAIL");
    return errors;
}

// 2**24 and many ones behind it: float32 has no 2**24 + 1, so a lane that already holds the first
// loses each one. Only those of its own block may be lost.
int check_blocks(bool column) {
    const int n = 40 * Shape::BLOCK * (column ? 1 : Shape::LANES);
    std::vector<float> x(n, 1.0f), y(1);
    std::vector<int64_t> index(1);
    cosim::deepen(reduce_f32_config::COSIM_DEPTH, x, y, index);
    x[0] = 16777216.0f;
    reduce_f32(x.data(), y.data(), index.data(), Shape::SAME, Shape::ADD, Shape::KEEP, 1, 1, 1, 1, 1, n, 0, 0, 0, 0, 0, 1, 0, 0, 1,
               column, 1.0f, 1.0f);
    const double lost = 16777216.0 + (n - 1) - y[0];
    const bool passed = 0 <= lost && lost <= 2 * Shape::BLOCK;
    std::printf("ones behind 2**24 %-6s %s\n", column ? "column" : "row", passed ? "PASS" : "FAIL");
    return passed ? 0 : 1;
}
// Columns whose means lie far apart and far from zero: each takes the differences to an element of its own.
int check_means() {
    constexpr int results = 3, n = 100;
    std::vector<float> x(2 * results * n), y(results);  // every other element
    std::vector<int64_t> index(results);
    cosim::deepen(reduce_f32_config::COSIM_DEPTH, x, y, index);
    double mean = 0, want = 0;
    for (int i = 0; i < n; ++i) {
        mean += i % 7 / static_cast<double>(n);
        for (int k = 0; k < results; ++k) x[2 * (i * results + k)] = static_cast<float>((k * k - 2) * 400000 + i % 7);
    }
    for (int i = 0; i < n; ++i) want += (i % 7 - mean) * (i % 7 - mean) / n;
    reduce_f32(x.data(), y.data(), index.data(), Shape::DEVIATION, Shape::ADD, Shape::DIVIDE, 1, 1, results, 1, 1, n, 0, 0, 2,
               0, 0, 2 * results, 0, 0, 1, true, static_cast<float>(n), 1.0f);
    int errors = 0;
    for (float found : y) errors += !(std::fabs(found - want) <= 2e-4 * want);
    std::printf("variances around means far apart %s\n", errors == 0 ? "PASS" : "FAIL");
    return errors;
}
}  // namespace

int main() {
    const Operation operations[] = {
        {Shape::SAME, Shape::ADD, Shape::KEEP}, {Shape::SAME, Shape::ADD, Shape::DIVIDE},
        {Shape::SAME, Shape::MULTIPLY, Shape::KEEP},
        {Shape::SAME, Shape::MAX, Shape::KEEP}, {Shape::SAME, Shape::MIN, Shape::KEEP},
        {Shape::SAME, Shape::ARGMAX, Shape::KEEP}, {Shape::SAME, Shape::ARGMIN, Shape::KEEP},
        {Shape::DEVIATION, Shape::ADD, Shape::DIVIDE}, {Shape::DEVIATION, Shape::ADD, Shape::ROOT_OF_MEAN},
        {Shape::NONZERO, Shape::ADD, Shape::KEEP}, {Shape::MAGNITUDE, Shape::ADD, Shape::KEEP},
        {Shape::SQUARE, Shape::ADD, Shape::ROOT_OF_MEAN},
        {Shape::POWER, Shape::ADD, Shape::ROOT},
        {Shape::MAGNITUDE, Shape::MAX, Shape::KEEP}, {Shape::MAGNITUDE, Shape::MIN, Shape::KEEP},
    };
    constexpr int T = Shape::TILE;
    const Size sizes[] = {{{1, 1, 1}, {1, 1, 2}, 0}, {{1, 1, 3}, {1, 1, 10}, 1}, {{1, 1, 2}, {1, 3, Shape::LANES + 1}, 0},
                          {{1, 1, 2}, {1, 1, 2 * T + 3}, 0}, {{1, 1, 2}, {1, 1, T + 1}, 0}, {{1, 1, T + 5}, {1, 2, 3}, 0}, {{1, 1, 20}, {1, 5, 70}, 0},
                          {{2, 3, 4}, {2, 3, 5}, 1}, {{1, 2, 3}, {1, 0, 3}, 0}, {{1, 0, 3}, {1, 2, 3}, 0},
                          {{1, 2, 3}, {0, 2, 3}, 0}, {{1, 2, 3}, {2, 2, 0}, 0}, {{1, 1, 2}, {1, 1, 1}, 0}};
    int errors = check_blocks(false) + check_blocks(true) + check_means();
    for (const Operation& op : operations)
        for (const Size& size : sizes) errors += check(op, size, false) + check(op, size, true);
    return errors == 0 ? 0 : 1;
}
