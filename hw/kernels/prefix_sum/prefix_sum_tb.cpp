// Testbench of prefix_sum: lengths from none on, sums that wrap round, a guard behind the output.
#include "prefix_sum.hpp"

#include <cstdio>
#include <vector>

using prefix_sum_config::COSIM_DEPTH;

static int check(int n, int scale) {
    const int capacity = COSIM_DEPTH + 1;
    const int guard = -12345;
    std::vector<int> values(capacity), sums(capacity, guard);
    for (int i = 0; i < capacity; ++i) values[i] = scale * (i % 1009 - 300);
    prefix_sum(values.data(), sums.data(), n);

    int errors = 0;
    long long total = 0;
    for (int i = 0; i < capacity; ++i) {
        total += values[i];
        const int expected = i < n ? static_cast<int>(static_cast<unsigned int>(total)) : guard;
        if (sums[i] != expected) {
            if (errors++ == 0) std::printf("  first wrong index %d: %d, expected %d\n", i, sums[i], expected);
        }
    }
    std::printf("prefix_sum n=%-6d scale=%-7d %s\n", n, scale, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    int errors = 0;
    for (int n : {-1, 0, 1, 2, 17, 1023, COSIM_DEPTH}) errors += check(n, 1) + check(n, 3000000);
    return errors == 0 ? 0 : 1;
}
