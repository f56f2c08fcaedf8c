// What the testbenches of gemm and its variants share: a product against a plain triple loop.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <vector>

#include "gemm_tb_epilogue.hpp"

namespace gemm_tb {
struct Size { int m, n, k, lda, ldb, ldc; };

// A fixed generator (numerical recipes' LCG): the same data on every machine and in co-simulation.
inline uint32_t next(uint32_t& state) { return state = state * 1664525u + 1013904223u; }
inline int8_t next_int8(uint32_t& state) { return static_cast<int8_t>(next(state) >> 24); }

template <typename Kernel>
int check(const char* name, Kernel kernel, Size s, size_t depth, size_t columns, int mode, bool extremes) {
    const int32_t guard = 0x5a5a5a5a;
    const float odd[] = {0.0f, -0.5f, 1e30f, INFINITY, as_float(0x7fc00001), 1e-30f, 0.25f};
    std::vector<int8_t> a(depth), b(depth);
    std::vector<int32_t> c(depth, guard), expected(depth, guard), bias(columns);
    std::vector<float> scale(columns);
    uint32_t state = 2024;
    if ((mode & KIND) == INT8) s.ldc = (s.ldc + LANES - 1) / LANES * LANES;
    for (auto& value : a) value = extremes ? static_cast<int8_t>(-128) : next_int8(state);
    for (auto& value : b) value = extremes ? static_cast<int8_t>(next_int8(state) < 0 ? -128 : 127) : next_int8(state);
    for (size_t j = 0; j < columns; ++j) {
        const float offset = static_cast<float>(next_int8(state)) * 1000.3f;
        scale[j] = extremes ? odd[j % 7] : static_cast<float>(next_int8(state)) * (j % 2 ? 1 / 1024.0f : 1.7e-4f);
        bias[j] = static_cast<int32_t>(extremes ? next(state) | 0x40000000u : next(state) >> 17);
        if ((mode & KIND) == FLOAT32) bias[j] = as_bits(offset);
    }
    for (int i = 0; i < s.m; ++i) {
        for (int j = 0; j < s.n; ++j) {
            int32_t sum = 0;
            for (int k = 0; k < s.k; ++k) {
                sum += a[static_cast<size_t>(i) * s.lda + k] * b[static_cast<size_t>(k) * s.ldb + j];
            }
            put(expected, static_cast<size_t>(i) * s.ldc, j, sum, bias[j], scale[j], mode);
        }
    }
    kernel(a.data(), b.data(), c.data(), s.m, s.n, s.k, s.lda, s.ldb, s.ldc, bias.data(), scale.data(), mode);

    int errors = 0;
    for (size_t i = 0; i < depth; ++i) {  // the whole memory: nothing beside the product may change
        if (!same(c[i], expected[i], mode) && errors++ == 0) {
            std::printf("  first wrong word %zu: 0x%08x, expected 0x%08x\n", i, c[i], expected[i]);
        }
    }
    std::printf("%s m=%d n=%d k=%d strides %d %d %d mode %d%s %s\n", name, s.m, s.n, s.k, s.lda, s.ldb, s.ldc, mode,
                extremes ? " (extreme values)" : "", errors == 0 ? "PASS" : "FAIL");
    return errors;
}

// Sizes on, below and beyond the tile of a variant, dense and with gaps between the rows.
template <typename S, typename Kernel>
int check_all(const char* name, Kernel kernel, size_t depth, size_t columns) {
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
    int errors = check_rounding(name, kernel, depth, columns);
    for (const Size& size : sizes) {
        for (const int mode : MODES) {
            errors += check(name, kernel, size, depth, columns, mode, false);
            errors += check(name, kernel, size, depth, columns, mode, true);
        }
    }
    return errors;
}
}  // namespace gemm_tb
