// Testbench of vadd: lengths around the tile and beyond it, and a guard behind the output.
#include "vadd.hpp"

#include <cstdio>
#include <vector>

using vadd_config::COSIM_DEPTH;

static int check(int n) {
    const int capacity = COSIM_DEPTH + 1;
    const float guard = -12345.0f;
    std::vector<float> a(capacity), b(capacity), c(capacity, guard);
    for (int i = 0; i < capacity; ++i) {
        a[i] = 0.37f * static_cast<float>(i % 1009) - 11.0f;
        b[i] = 1.0f / static_cast<float>(i + 1);
    }
    vadd(a.data(), b.data(), c.data(), n);

    int errors = 0;
    for (int i = 0; i < capacity; ++i) {
        const float expected = i < n ? a[i] + b[i] : guard;
        if (c[i] != expected) {
            if (errors++ == 0) std::printf("  first wrong index %d: %g, expected %g\n", i, c[i], expected);
        }
    }
    std::printf("vadd n=%-6d %s\n", n, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    using vadd_config::TILE;
    const int lengths[] = {0, 1, 15, 17, TILE - 1, TILE, TILE + 1, 3 * TILE + 5, COSIM_DEPTH};
    int errors = 0;
    for (int n : lengths) errors += check(n);
    return errors == 0 ? 0 : 1;
}
