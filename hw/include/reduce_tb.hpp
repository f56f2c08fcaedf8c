// What the testbench of reduce_f32 compares with: how six dimensions lie in memory, and one result in double.
#pragma once
#include <cmath>
#include <vector>

namespace reduce_tb {
struct Operation {
    int term, combine, finish;
};
struct Size {
    int k[3], r[3], gap;
};
// Strides of the kept and the reduced dimensions of x, kept ones of y; elements `gap` apart and more.
struct Layout {
    int k[3], r[3], y[3], x_count, y_count;
    // A kept dimension before each reduced one; `column`: neighbours in memory belong to different results.
    Layout(const Size& s, bool column) {
        x_count = y_count = 1 + s.gap;
        for (int d = 2; d >= 0; --d) {
            const bool across = column && d == 2;
            (across ? k : r)[d] = x_count;
            x_count = x_count * (across ? s.k : s.r)[d] + s.gap;
            (across ? r : k)[d] = x_count;
            x_count = x_count * (across ? s.r : s.k)[d] + s.gap;
            y[d] = y_count;
            y_count = y_count * s.k[d] + s.gap;
        }
    }
};

template <class Shape> double term_of(int term, double v, double mean, double p) {
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
template <class Shape>
double expected(Operation op, const std::vector<double>& values, double divisor, double p, int& place) {
    double mean = 0, result = op.combine == Shape::MULTIPLY ? 1 : 0;
    for (double v : values) mean += v / static_cast<double>(values.size());
    place = 0;
    for (size_t i = 0; i < values.size(); ++i) {
        const double v = term_of<Shape>(op.term, values[i], mean, p);
        if (i > 0 && std::isnan(result)) break;  // the first NaN stays
        const bool great = op.combine == Shape::MAX || op.combine == Shape::ARGMAX;
        if (op.combine == Shape::ADD) result += v;
        else if (op.combine == Shape::MULTIPLY) result *= v;
        else if (i == 0 || std::isnan(v) || (great ? v > result : v < result)) result = v, place = static_cast<int>(i);
    }
    if (op.finish == Shape::DIVIDE) return result / divisor;
    if (op.finish == Shape::ROOT_OF_MEAN) return std::sqrt(result / divisor);
    return op.finish == Shape::ROOT ? std::pow(result, 1 / p) : result;
}
}  // namespace reduce_tb
