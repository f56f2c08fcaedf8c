// What every rung of dot has to do: exact sums of small integers, and a bound for rounded ones.
#pragma once
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "cosim.hpp"

namespace ladder {
template <typename Kernel>
int dot_errors(const char* name, Kernel kernel, int n, int granule, int depth, bool whole) {
    const int capacity = (n + granule - 1) / granule * granule;  // whole words of the ports
    // Behind the last element is a NaN: a kernel that adds it to the sum is found out.
    std::vector<float> a(capacity, std::numeric_limits<float>::quiet_NaN());
    std::vector<float> b(capacity, 1.0f);
    cosim::deepen(depth, a, b);
    double exact = 0.0, size = 0.0;
    for (int i = 0; i < n; ++i) {
        a[i] = whole ? static_cast<float>(i % 7 - 3) : 0.37f * static_cast<float>(i % 1009) - 180.0f;
        b[i] = whole ? static_cast<float>(i % 5 - 2) : 1.0f / static_cast<float>(i % 97 + 1);
        exact += static_cast<double>(a[i]) * b[i];
        size += std::fabs(static_cast<double>(a[i]) * b[i]);
    }
    std::vector<float> result = {-1.0f, -12345.0f, -12345.0f};
    kernel(a.data(), b.data(), result.data(), n);
    // Higham, "Accuracy and Stability of Numerical Algorithms", 3.1: any order of n terms.
    const double bound = whole ? 0.0 : 1.1 * n * std::ldexp(1.0, -24) * size;
    const double error = std::fabs(result[0] - exact);
    const bool good = error <= bound && result[1] == -12345.0f && result[2] == -12345.0f;
    std::printf("%s n=%-6d error %g of %g %s\n", name, n, error, bound, good ? "PASS" : "FAIL");
    return good ? 0 : 1;
}

template <typename Kernel>
int check_dot(const char* name, Kernel kernel, int granule, int depth) {
    const int lengths[] = {0, 1, 2, 15, 17, 1023, 1024, 1025, 3077, depth};
    int errors = 0;
    for (int n : lengths) {
        errors += dot_errors(name, kernel, n, granule, depth, true);
        errors += dot_errors(name, kernel, n, granule, depth, false);
    }
    return errors == 0 ? 0 : 1;
}
}  // namespace ladder
