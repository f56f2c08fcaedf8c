// Testbench of reduce_f32: every operation against double, rows and columns, around tile and block.
#include "reduce_f32.hpp"
#include "../../include/cosim.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using reduce_f32_config::Shape;

namespace {
struct Operation {
    int term, combine, finish;
};
struct Size {
    int kept, outer, inner;
};

double term_of(int term, double v, double mean, double p) {
    switch (term) {
        case Shape::MAGNITUDE: return std::fabs(v);
        case Shape::SQUARE: return v * v;
        case Shape::NONZERO: return v != 0;
        case Shape::POWER: return std::pow(std::fabs(v), p);
        case Shape::DEVIATION: return (v - mean) * (v - mean);
        default: return v;
    }
}

// The values of one result in a row, in double.
double expected(Operation op, const std::vector<double>& values, double divisor, double p, int& place) {
    double mean = 0, result = op.combine == Shape::MULTIPLY ? 1 : 0;
    for (double v : values) mean += v / static_cast<double>(values.size());
    place = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        const double v = term_of(op.term, values[i], mean, p);
        const bool great = op.combine == Shape::MAX || op.combine == Shape::ARGMAX;
        if (op.combine == Shape::ADD) result += v;
        else if (op.combine == Shape::MULTIPLY) result *= v;
        else if (i == 0 || (great ? v > result : v < result)) result = v, place = static_cast<int>(i);
    }
    if (op.finish == Shape::DIVIDE) return result / divisor;
    if (op.finish == Shape::ROOT_OF_MEAN) return std::sqrt(result / divisor);
    return op.finish == Shape::ROOT ? std::pow(result, 1 / p) : result;
}

// x is outer x kept x inner, or outer x inner x kept where `column`; the middle one is kept or inner.
int check(Operation op, Size s, bool column) {
    const int n = s.outer * s.kept * s.inner, x_kept = column ? 1 : s.inner, x_inner = column ? s.kept : 1;
    const float divisor = static_cast<float>(s.outer * s.inner), p = 3.0f;
    std::vector<float> x(n), y(s.kept + 1, -77.0f);
    std::vector<int64_t> index(s.kept + 1, -77);
    cosim::deepen(reduce_f32_config::COSIM_DEPTH, x, y, index);
    // Products stay near 1; extremes come twice, so that the first counts; plain sums are exact in
    // float32, so that no term can hide in what rounding is allowed.
    const bool exact = op.term == Shape::SAME && op.combine == Shape::ADD;
    for (int i = 0; i < n; ++i)
        x[i] = op.combine == Shape::MULTIPLY ? 1.0f + static_cast<float>(i % 7 - 3) / 1024.0f
               : exact                       ? static_cast<float>(i * 37 % 501 - 125)
                                             : static_cast<float>(i * 37 % 501) / 25.0f - 5.0f;
    reduce_f32(x.data(), y.data(), index.data(), op.term, op.combine, op.finish, 1, 1, s.kept, 1, s.outer, s.inner, 0,
               0, x_kept, 0, s.kept * s.inner, x_inner, 0, 0, 1, column, divisor, p);
    int errors = (y[s.kept] != -77.0f) + (index[s.kept] != -77);
    for (int k = 0; k < s.kept; ++k) {
        std::vector<double> values;
        for (int o = 0; o < s.outer; ++o)
            for (int i = 0; i < s.inner; ++i) values.push_back(x[o * s.kept * s.inner + k * x_kept + i * x_inner]);
        int place = 0;
        const double want = expected(op, values, divisor, p, place);
        const double room = exact ? 1e-7 * std::fabs(want) : 2e-5 * std::fabs(want);  // exact: but for the division
        const bool placed = op.combine < Shape::ARGMAX || index[k] == place;
        if ((!(std::fabs(y[k] - want) <= room) || !placed) && errors++ == 0)
            std::printf("  first wrong index %d: %g at %d, expected %g at %d\n", k, y[k], int(index[k]), want, place);
    }
    std::printf("op=%d,%d,%d %dx%dx%d %-6s %s\n", op.term, op.combine, op.finish, s.kept, s.outer, s.inner,
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
}  // namespace

int main() {
    const Operation operations[] = {
        {Shape::SAME, Shape::ADD, Shape::KEEP},
        {Shape::SAME, Shape::ADD, Shape::DIVIDE},
        {Shape::SAME, Shape::MULTIPLY, Shape::KEEP},
        {Shape::SAME, Shape::MAX, Shape::KEEP}, {Shape::SAME, Shape::MIN, Shape::KEEP},
        {Shape::SAME, Shape::ARGMAX, Shape::KEEP}, {Shape::SAME, Shape::ARGMIN, Shape::KEEP},
        {Shape::DEVIATION, Shape::ADD, Shape::DIVIDE},
        {Shape::DEVIATION, Shape::ADD, Shape::ROOT_OF_MEAN},
        {Shape::NONZERO, Shape::ADD, Shape::KEEP},
        {Shape::MAGNITUDE, Shape::ADD, Shape::KEEP},
        {Shape::SQUARE, Shape::ADD, Shape::ROOT_OF_MEAN},
        {Shape::POWER, Shape::ADD, Shape::ROOT},
        {Shape::MAGNITUDE, Shape::MAX, Shape::KEEP}, {Shape::MAGNITUDE, Shape::MIN, Shape::KEEP},
    };
    constexpr int T = Shape::TILE;
    const Size sizes[] = { {1, 1, 2},         {3, 1, 10},    {2, 3, Shape::LANES + 1},
                           {2, 1, 2 * T + 3}, {T + 5, 2, 3}, {20, 5, 70} };
    int errors = check_blocks(false) + check_blocks(true);
    for (const Operation& op : operations)
        for (const Size& size : sizes) errors += check(op, size, false) + check(op, size, true);
    return errors == 0 ? 0 : 1;
}
