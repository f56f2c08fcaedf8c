// What every rung of vadd has to do: lengths around bursts and tiles, and a guard behind the output.
#pragma once
#include <cstdio>
#include <vector>

#include "cosim.hpp"

namespace ladder {
// granule: floats in a word of the ports; the last word may be written as a whole.
template <typename Kernel>
int vadd_errors(const char* name, Kernel kernel, int n, int granule, int depth) {
    const int written = (n + granule - 1) / granule * granule;
    const float guard = -12345.0f;
    std::vector<float> a(written), b(written), c(written + granule, guard);
    cosim::deepen(depth, a, b, c);
    for (int i = 0; i < written; ++i) {
        a[i] = 0.37f * static_cast<float>(i % 1009) - 11.0f;
        b[i] = 1.0f / static_cast<float>(i + 1);
    }
    kernel(a.data(), b.data(), c.data(), n);

    int errors = 0;
    for (int i = 0; i < written + granule; ++i) {
        if (i >= n && i < written) continue;
        const float expected = i < n ? a[i] + b[i] : guard;
        if (c[i] != expected) {
            if (errors++ == 0) std::printf("  first wrong index %d: %g, expected %g\n", i, c[i], expected);
        }
    }
    std::printf("%s n=%-6d %s\n", name, n, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

template <typename Kernel>
int check_vadd(const char* name, Kernel kernel, int granule, int depth) {
    const int lengths[] = {0, 1, 2, 15, 17, 1023, 1024, 1025, 3077, depth};
    int errors = 0;
    for (int n : lengths) errors += vadd_errors(name, kernel, n, granule, depth);
    return errors == 0 ? 0 : 1;
}
}  // namespace ladder
