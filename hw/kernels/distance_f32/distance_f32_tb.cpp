// Testbench of distance_f32: every distance and the dot product against double, around the tiles.
#include "distance_f32.hpp"
#include "../../include/cosim.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using distance_f32_config::Shape;
static_assert(Shape::COUNT == 0 && Shape::MANHATTAN == 1 && Shape::EUCLID == 2 && Shape::CHEBYSHEV == 3 &&
              Shape::MINKOWSKI == 4 && Shape::DOT == 5, "the numbers that the driver writes");

namespace {
struct Size {
    int batches, rows, cols, length;
};

double expected(int op, const float* x, int x_step, const float* y, int y_step, int length, double p) {
    double sum = 0;
    for (int k = 0; k < length; ++k) {
        const double gap = std::fabs(double(x[k * x_step]) - y[k * y_step]);
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

// a with gaps, and b shared by all batches; or b with gaps, too.
int check(int op, Size s, bool shared) {
    const float p = 1.5f, guard = -77.0f;
    const int a_step = shared ? 1 : 2, a_row = s.length * a_step + 1, a_batch = s.rows * a_row + 2;
    const int b_step = shared ? 1 : 2, b_row = s.length * b_step + 2, b_batch = shared ? 0 : s.cols * b_row + 1;
    const int c_row = s.cols + 1, c_batch = s.rows * c_row + 3;
    const std::vector<float> a = numbers(s.batches * a_batch, 3), b = numbers((shared ? 1 : s.batches) * s.cols * b_row + s.batches, 8);
    std::vector<float> c(s.batches * c_batch, guard);
    cosim::deepen(distance_f32_config::COSIM_DEPTH, c);
    distance_f32(a.data(), b.data(), c.data(), op, s.batches, s.rows, s.cols, s.length, a_batch, a_row, a_step, b_batch,
                 b_row, b_step, c_batch, c_row, p);
    int errors = 0;
    for (int i = 0; s.length > 0 && i < s.batches * s.rows * s.cols; ++i) {
        const int n = i / s.cols / s.rows, r = i / s.cols % s.rows, k = i % s.cols;
        const double want = expected(op, &a[n * a_batch + r * a_row], a_step, &b[n * b_batch + k * b_row], b_step, s.length, p);
        float& found = c[n * c_batch + r * c_row + k];
        if (!(std::fabs(found - want) <= 2e-5 * want) && errors++ == 0)
            std::printf("  first wrong index %d: %g, expected %g\n", i, found, want);
        found = guard;
    }
    for (float value : c) errors += value != guard;
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
    const Size sizes[] = { {1, 1, 1, 1}, {1, 2, 3, 0}, {2, 3, 5, 7}, {1, r, Shape::COLS, k}, {2, r + 1, Shape::COLS + 3, 2 * k + 5} };
    int errors = 0;
    for (int op = 0; op < Shape::DOT; ++op)
        for (const Size& size : sizes) errors += check(op, size, true) + check(op, size, false);
    for (int length : {1, Shape::LANES + 1, Shape::TILE, 3 * Shape::TILE + 5})
        errors += check_dot(length, 1) + check_dot(length, 2);
    return errors == 0 ? 0 : 1;
}
