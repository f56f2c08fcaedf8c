// Testbench of activation_f32: lengths around the tile, NaN and zeros of both signs, a guard behind the output.
#include "activation_f32.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using namespace activation_f32_config;

static_assert(RELU == 0 && BACKWARD == 1, "the numbers that the driver writes");

static int check(int n, int op, float threshold) {
    const int capacity = COSIM_DEPTH + 1;
    const float guard = -12345.0f;
    const float special[] = {NAN, INFINITY, -INFINITY, 0.0f, -0.0f, 1e-45f, threshold};
    std::vector<float> gradient(capacity), x(capacity), y(capacity, guard);
    for (int i = 0; i < capacity; ++i) {
        gradient[i] = 0.25f * static_cast<float>(i % 31) - 3.0f;
        x[i] = i % 5 == 0 ? special[i / 5 % 7] : static_cast<float>(i % 13) - 6.0f;
    }
    activation_f32(gradient.data(), x.data(), y.data(), op, threshold, n);
    int errors = 0;
    for (int i = 0; i < capacity; ++i) {
        float expected = guard;
        if (i < n && op == RELU) expected = x[i] < 0.0f ? 0.0f : x[i];
        if (i < n && op == BACKWARD) expected = std::isnan(x[i]) || x[i] > threshold ? gradient[i] : 0.0f;
        const bool same = y[i] == expected && std::signbit(y[i]) == std::signbit(expected);
        if (!same && !(std::isnan(y[i]) && std::isnan(expected)) && errors++ == 0) {
            std::printf("  first wrong index %d: %g, expected %g\n", i, y[i], expected);
        }
    }
    std::printf("activation_f32 op=%d threshold=%g n=%-6d %s\n", op, threshold, n, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    int errors = 0;
    for (int n : {0, 1, 15, TILE - 1, TILE, TILE + 1, 3 * TILE + 5, COSIM_DEPTH}) {
        errors += check(n, RELU, 0.0f) + check(n, BACKWARD, 0.0f) + check(n, BACKWARD, 1.5f);
    }
    return errors == 0 ? 0 : 1;
}
