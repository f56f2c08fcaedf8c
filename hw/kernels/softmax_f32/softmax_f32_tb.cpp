// Testbench of softmax_f32: every op against double, rows in a line and side by side, around the tile.
#include "softmax_f32.hpp"
#include "../../include/cosim.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using softmax_f32_config::Shape;
static_assert(Shape::SOFTMAX == 0 && Shape::LOG_SOFTMAX == 1 && Shape::LOGSUMEXP == 2 && Shape::SOFTMAX_BACKWARD == 3 &&
              Shape::LOG_SOFTMAX_BACKWARD == 4, "the numbers that the driver writes");

namespace {
struct Size {
    int outer, length, inner;
};

// outer x length x inner elements, with gaps behind each element, row and sheet.
struct Layout {
    int outer, length, inner, count;
    Layout(Size s, int gap)
        : outer(0), length(s.inner * (1 + gap) + gap), inner(1 + gap), count(0) {
        outer = s.length * length + gap;
        count = s.outer * outer;
    }
};

// One row in double: x, and backwards y; x_step and y_step elements apart.
double expected(int op, const float* x, int x_step, const float* y, int y_step, int length, int at) {
    double top = -INFINITY, sum = 0, products = 0, gradients = 0;
    for (int l = 0; l < length; ++l) top = std::fmax(top, x[l * x_step]);
    for (int l = 0; l < length; ++l) {
        sum += std::exp(x[l * x_step] - top);
        products += double(x[l * x_step]) * y[l * y_step];
        gradients += x[l * x_step];
    }
    const double a = x[at * x_step], b = y[at * y_step];
    if (op == Shape::SOFTMAX) return std::exp(a - top) / sum;
    if (op == Shape::LOG_SOFTMAX) return a - top - std::log(sum);
    if (op == Shape::LOGSUMEXP) return top + std::log(sum);
    if (op == Shape::SOFTMAX_BACKWARD) return b * (a - products);
    return a - std::exp(b) * gradients;
}

// logsumexp of rows with infinities: the largest of them, or -inf where nothing else is there.
int check_infinities(bool column) {
    const int length = 5, inner = 4;
    const float inf = INFINITY, nothing = -INFINITY;
    const float rows[inner][length] = {{1, inf, 2, nothing, 3}, {nothing, nothing, nothing, nothing, nothing},
                                       {nothing, 0, nothing, 0, nothing}, {inf, inf, 1, 2, 3}};
    const float want[inner] = {inf, nothing, 0.69314718f, inf};
    std::vector<float> a(length * inner), c(inner, -77.0f);
    for (int l = 0; l < length; ++l)
        for (int i = 0; i < inner; ++i) a[l * inner + i] = rows[i][l];
    cosim::deepen(softmax_f32_config::COSIM_DEPTH, a, c);
    softmax_f32(a.data(), a.data(), c.data(), Shape::LOGSUMEXP, 1, length, inner, 0, inner, 1, 0, inner, 1, 0, inner, 1,
                column);
    int errors = 0;
    for (int i = 0; i < inner; ++i) errors += !(c[i] == want[i] || std::fabs(c[i] - want[i]) < 1e-6f);
    std::printf("logsumexp with infinities %-6s %s\n", column ? "column" : "row", errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int check(int op, Size size, bool column) {
    const bool scalars = op == Shape::LOGSUMEXP;  // one result a row
    const Layout la(size, op % 3), lb(size, (op + 1) % 3), lc({size.outer, scalars ? 1 : size.length, size.inner}, (op + 2) % 3);
    const float guard = -77.0f;
    std::vector<float> a(la.count), b(lb.count), c(lc.count + 1, guard);
    cosim::deepen(softmax_f32_config::COSIM_DEPTH, a, b, c);
    for (int i = 0; i < la.count; ++i) a[i] = 300.0f * static_cast<float>(i % 1009) / 1009.0f - 100.0f;
    for (int i = 0; i < lb.count; ++i) b[i] = -static_cast<float>(i % 31) / 31.0f;
    softmax_f32(a.data(), b.data(), c.data(), op, size.outer, size.length, size.inner, la.outer, la.length, la.inner, lb.outer,
                lb.length, lb.inner, lc.outer, lc.length, lc.inner, column);
    int errors = 0;
    for (int n = 0; size.length > 0 && n < size.outer * size.inner; ++n) {
        const int o = n / size.inner, i = n % size.inner;
        for (int l = 0; l < (scalars ? 1 : size.length); ++l) {
            const double want = expected(op, &a[o * la.outer + i * la.inner], la.length, &b[o * lb.outer + i * lb.inner],
                                         lb.length, size.length, l);
            // exp of 300 below the top is zero in float32; a logarithm near 0 has its error from the terms.
            const double scale = op >= Shape::SOFTMAX_BACKWARD ? 200.0 * size.length : std::fabs(want);
            const double room = (op == Shape::SOFTMAX ? 1e-30 : 1e-5) + 4e-5 * scale;
            float& found = c[o * lc.outer + l * lc.length + i * lc.inner];
            if (!(std::fabs(found - want) <= room) && errors++ == 0)
                std::printf("  first wrong [%d][%d][%d]: %g, expected %g\n", o, l, i, found, want);
            found = guard;
        }
    }
    for (float value : c) errors += value != guard;
    std::printf("op=%d %dx%dx%d %-6s %s\n", op, size.outer, size.length, size.inner, column ? "column" : "row",
                errors == 0 ? "PASS" : "FAIL");
    return errors;
}
}  // namespace

int main() {
    const int tile = Shape::TILE;
    const Size sizes[] = {{1, 1, 1},    {7, 10, 1},           {2, Shape::LANES + 1, 17},
                          {1, tile, 1}, {1, tile + 1, 1}, {2, 2 * tile + 3, 1}, {1, 5, tile + 9}, {1, 0, 3}, {0, 4, 3}};
    int errors = check_infinities(false) + check_infinities(true);
    for (int op = 0; op < 5; ++op)
        for (const Size& size : sizes) errors += check(op, size, false) + check(op, size, true);
    return errors == 0 ? 0 : 1;
}
