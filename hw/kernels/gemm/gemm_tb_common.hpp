// What the testbenches of gemm and its variants share: a product against a plain triple loop.
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace gemm_tb {
struct Size { int m, n, k, lda, ldb, ldc; };

// A fixed generator (numerical recipes' LCG): the same data on every machine and in co-simulation.
inline int8_t next_int8(uint32_t& state) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int8_t>(state >> 24);
}

template <typename Kernel>
int check(const char* name, Kernel kernel, const Size& s, size_t depth, bool extremes) {
    const int32_t guard = 0x5a5a5a5a;
    std::vector<int8_t> a(depth), b(depth);
    std::vector<int32_t> c(depth, guard), expected(depth, guard);
    uint32_t state = 2024;
    for (auto& value : a) value = extremes ? static_cast<int8_t>(-128) : next_int8(state);
    for (auto& value : b) value = extremes ? static_cast<int8_t>(next_int8(state) < 0 ? -128 : 127) : next_int8(state);
    for (int i = 0; i < s.m; ++i) {
        for (int j = 0; j < s.n; ++j) {
            int32_t sum = 0;
            for (int k = 0; k < s.k; ++k) {
                sum += a[static_cast<size_t>(i) * s.lda + k] * b[static_cast<size_t>(k) * s.ldb + j];
            }
            expected[static_cast<size_t>(i) * s.ldc + j] = sum;
        }
    }
    kernel(a.data(), b.data(), c.data(), s.m, s.n, s.k, s.lda, s.ldb, s.ldc);

    int errors = 0;
    for (size_t i = 0; i < depth; ++i) {  // the whole memory: nothing beside the product may change
        if (c[i] != expected[i] && errors++ == 0) {
            std::printf("  first wrong element %zu: %d, expected %d\n", i, c[i], expected[i]);
        }
    }
    std::printf("%s m=%d n=%d k=%d strides %d %d %d%s %s\n", name, s.m, s.n, s.k, s.lda, s.ldb, s.ldc,
                extremes ? " (extreme values)" : "", errors == 0 ? "PASS" : "FAIL");
    return errors;
}

// Sizes on, below and beyond the tile of a variant, dense and with gaps between the rows.
template <typename S, typename Kernel>
int check_all(const char* name, Kernel kernel, size_t depth) {
    const int m = S::TILE_M, n = S::TILE_N, k = S::TILE_K;
    const Size sizes[] = {
        {1, 1, 1, 1, 1, 1},
        {3, 5, 0, 1, 5, 5},
        {0, 5, 7, 7, 5, 5},
        {1, 100, 300, 300, 100, 100},
        {17, 19, 23, 31, 29, 37},
        {S::DEPTH, S::WIDTH, S::DEPTH, S::DEPTH, S::WIDTH, S::WIDTH},
        {m, n, k, k, n, n},
        {m + 1, n + 3, k + 5, k + 7, n + 11, n + 13},
        {2 * m - 1, 40, 2 * k + 1, 2 * k + 1, 40, 41},
        {30, 2 * n + 9, 3 * k, 3 * k + 2, 2 * n + 9, 2 * n + 9},
    };
    int errors = 0;
    for (const Size& size : sizes) {
        errors += check(name, kernel, size, depth, false);
        errors += check(name, kernel, size, depth, true);
    }
    return errors;
}
}  // namespace gemm_tb
