// Testbench of histogram: the orders in which a read could overtake a write, and a guard behind the bins.
#include "histogram.hpp"

#include <cstdio>
#include <vector>

using histogram_config::BINS;
using histogram_config::COSIM_DEPTH;

// style 0: noise; 1: equal bytes; 2: a b a b; 3: a a b b; 4: all values in order; 5: a b c a b c
static unsigned char value_at(int i, int style) {
    const unsigned int noise = (2654435761u * static_cast<unsigned int>(i + 1)) >> 24;
    const int values[] = {static_cast<int>(noise), 255, i % 2 * 255, i / 2 % 2 * 7, i % BINS, i % 3 * 100};
    return static_cast<unsigned char>(values[style]);
}

static int check(int n, int style) {
    const int capacity = COSIM_DEPTH;
    std::vector<unsigned char> values(capacity);
    std::vector<int> counts(BINS + 1, -5), expected(BINS + 1, 0);
    expected[BINS] = -5;
    for (int i = 0; i < capacity; ++i) {
        values[i] = value_at(i, style);
        if (i < n) ++expected[values[i]];
    }
    histogram(values.data(), counts.data(), n);

    int errors = 0;
    for (int v = 0; v <= BINS; ++v) {
        if (counts[v] != expected[v]) {
            if (errors++ == 0) std::printf("  first wrong bin %d: %d, expected %d\n", v, counts[v], expected[v]);
        }
    }
    std::printf("histogram n=%-6d style=%d %s\n", n, style, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    int errors = 0;
    for (int style = 0; style < 6; ++style) {
        for (int n : {-1, 0, 1, 2, 3, 255, 257, COSIM_DEPTH - 1}) errors += check(n, style);
    }
    return errors == 0 ? 0 : 1;
}
