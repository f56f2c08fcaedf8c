// Testbench of distance_f32: every distance and the dot product against double, around the tiles.
#include "distance_f32.hpp"
#include "../../include/cosim.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using distance_f32_config::Shape;

namespace {
struct Size {
    int batches, rows, cols, length;
};

double expected(int op, const float* x, const float* y, int length, double p) {
    double sum = 0;
    for (int k = 0; k < length; ++k) {
        const double gap = std::fabs(double(x[k]) - y[k]);
        if (op == Shape::COUNT) sum += gap != 0;
        else if (op == Shape::CHEBYSHEV) sum = std::fmax(sum, gap);
        else sum += std::pow(gap, op == Shape::MANHATTAN ? 1 : op == Shape::EUCLID ? 2 : p);
    }
    if (op == Shape::EUCLID) return std::sqrt(sum);
    return op == Shape::MINKOWSKI ? std::pow(sum, 1 / p) : sum;
}

std::vector<float> numbers(int n, int seed) {
    std::vector<float> made(n);
    cosim::deepen(distance_f32_config::COSIM_DEPTH, made);
    for (int i = 0; i < n; ++i) made[i] = static_cast<float>((i + seed) * 37 % 501) / 100.0f - 2.5f;
    return made;
}

int check(int op, Size s) {
    const float p = 1.5f;
    const std::vector<float> a = numbers(s.batches * s.rows * s.length, 3), b = numbers(s.cols * s.length, 8);
    std::vector<float> c(s.batches * s.rows * s.cols + 1, -77.0f);
    cosim::deepen(distance_f32_config::COSIM_DEPTH, c);
    // All batches share b: its stride is 0.
    distance_f32(a.data(), b.data(), c.data(), op, s.batches, s.rows, s.cols, s.length, s.rows * s.length, s.length, 1,
                 0, s.length, 1, s.rows * s.cols, s.cols, p);
    int errors = c.back() != -77.0f;
    for (int i = 0; i < s.batches * s.rows * s.cols; ++i) {
        const double want = expected(op, &a[i / s.cols * s.length], &b[i % s.cols * s.length], s.length, p);
        if (!(std::fabs(c[i] - want) <= 2e-5 * want) && errors++ == 0)
            std::printf("  first wrong index %d: %g, expected %g\n", i, c[i], want);
    }
    std::printf("op=%d %dx%dx%dx%d %s\n", op, s.batches, s.rows, s.cols, s.length, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int check_dot(int length, int step) {
    const std::vector<float> a = numbers(length * step, 3), b = numbers(length, 8);
    std::vector<float> c(2, -77.0f);
    cosim::deepen(distance_f32_config::COSIM_DEPTH, c);
    double want = 0, magnitude = 0;
    for (int i = 0; i < length; ++i) {
        want += double(a[i * step]) * b[i];
        magnitude += std::fabs(double(a[i * step]) * b[i]);
    }
    distance_f32(a.data(), b.data(), c.data(), Shape::DOT, 1, 1, 1, length, 0, 0, step, 0, 0, 1, 0, 0, 0.0f);
    const bool good = std::fabs(c[0] - want) <= 1e-5 * magnitude && c[1] == -77.0f;
    if (!good) std::printf("  first wrong index 0: %g, expected %g\n", c[0], want);
    std::printf("dot length=%d step=%d %s\n", length, step, good ? "PASS" : "FAIL");
    return !good;
}
}  // namespace

int main() {
    const int r = Shape::ROWS, k = Shape::DEPTH;
    const Size sizes[] = { {1, 1, 1, 1}, {2, 3, 5, 7}, {1, r, Shape::COLS, k}, {2, r + 1, Shape::COLS + 3, 2 * k + 5} };
    int errors = 0;
    for (int op = 0; op < Shape::DOT; ++op)
        for (const Size& size : sizes) errors += check(op, size);
    for (int length : {1, Shape::LANES + 1, Shape::TILE, 3 * Shape::TILE + 5})
        errors += check_dot(length, 1) + check_dot(length, 3);
    return errors == 0 ? 0 : 1;
}
