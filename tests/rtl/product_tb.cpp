// Bench of gemm_array's products: every pair of int8 that shares a DSP48E1, times every int8.
#include "Vgemm_product.h"

#include "bench.hpp"

static constexpr unsigned PAIRS = 16;  // at once

int main() {
    Vgemm_product top;
    uint64_t products = 0;
    for (unsigned first = 0; first < 0x10000; first += PAIRS) {
        for (unsigned i = 0; i < PAIRS / 2; ++i)
            top.b_i[i] = (first + 2 * i) | (first + 2 * i + 1) << 16;
        // Row 1 gets its weights through a memory of two words.
        for (unsigned cycle = 0; cycle < 4; ++cycle) {
            top.clk_i = 0;
            top.eval();
            top.clk_i = 1;
            top.eval();
        }
        CHECK(top.arrived_o, "the weights from %04x on have not arrived", first);
        for (unsigned a = 0; a < 256; ++a) {
            top.a_i = a;
            top.eval();
            CHECK(top.equal_o == 15, "weights %04x to %04x times %02x: equal are %x, expected f", first,
                  first + PAIRS - 1, a, top.equal_o);
            products += 4 * PAIRS;
        }
    }
    std::printf("%llu products\nPASS\n", static_cast<unsigned long long>(products));
}
