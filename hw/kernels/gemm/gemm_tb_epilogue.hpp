// The epilogue's part of the testbenches: a reference for every mode, and results known beforehand.
#pragma once
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <vector>

#include "gemm_epilogue.hpp"

namespace gemm_tb {
using namespace gemm_core;
static_assert(INT32 == 0 && INT8 == 1 && FLOAT32 == 2 && KIND == 3 && BIAS == 4 && RELU == 8, "the numbers that the driver writes");
constexpr int MODES[] = {INT32, INT32 | BIAS, INT32 | BIAS | RELU, INT32 | RELU,
                         INT8, INT8 | BIAS, INT8 | BIAS | RELU, INT8 | RELU,
                         FLOAT32, FLOAT32 | BIAS, FLOAT32 | BIAS | RELU, FLOAT32 | RELU};

// Where column j of a row that starts at element `start` is stored, and what: with the C library's
// roundings, where the kernel has ways of its own.
inline void put(std::vector<int32_t>& c, size_t start, int j, int32_t sum, int32_t bias, float scale, int mode) {
    auto* bytes = reinterpret_cast<unsigned char*>(c.data());
    const int32_t added = static_cast<int32_t>(static_cast<int64_t>(sum) + (mode & BIAS ? bias : 0));
    float value = static_cast<float>((mode & KIND) == FLOAT32 ? sum : added) * scale;
    if ((mode & KIND) == FLOAT32) {
        if (mode & BIAS) value += as_float(bias);
        if (mode & RELU && value < 0) value = 0;
        c[start + j] = as_bits(value);
    } else if ((mode & KIND) == INT8) {
        value = std::isnan(value) ? 0 : std::nearbyint(value);
        value = std::fmin(std::fmax(value, mode & RELU ? 0.0f : -128.0f), 127.0f);
        if (j % LANES == 0) std::memset(bytes + start + j, 0, LANES);  // the rest of the word as well
        bytes[start + j] = static_cast<unsigned char>(static_cast<int>(value));
    } else {
        c[start + j] = mode & RELU && added < 0 ? 0 : added;
    }
}

// Equal words; a NaN is as good as another, since the PL's differs from the PC's in its sign.
inline bool same(int32_t found, int32_t expected, int mode) {
    return found == expected ||
           ((mode & KIND) == FLOAT32 && std::isnan(as_float(found)) && std::isnan(as_float(expected)));
}

// Results known beforehand: halves that round to even, and a product that is rounded before the sum.
template <typename Kernel>
int check_rounding(const char* name, Kernel kernel, size_t depth, size_t columns) {
    const int doubled[] = {1, 3, 5, -1, -3, -5, 253, 254, 255, 300, -253, -256, -257, -258, 0};
    const signed char rounded[] = {0, 2, 2, 0, -2, -2, 126, 127, 127, 127, -126, -128, -128, -128, 0, 0};
    std::vector<int8_t> a(depth, 1), b(depth, 3);
    std::vector<int32_t> c(depth), bias(columns);
    std::vector<float> scale(columns, 0.5f);
    for (int j = 0; j < 15; ++j) bias[j] = doubled[j];
    kernel(a.data(), b.data(), c.data(), 1, 15, 0, 1, 16, 16, bias.data(), scale.data(), INT8 | BIAS);
    int errors = std::memcmp(c.data(), rounded, 16) != 0;
    bias[0] = as_bits(-1.0f);
    scale[0] = 1 / 3.0f;  // three times that is 1 + 2^-25, rounded 1
    kernel(a.data(), b.data(), c.data(), 1, 1, 1, 1, 1, 1, bias.data(), scale.data(), FLOAT32 | BIAS);
    errors += c[0] != 0;
    std::printf("%s known roundings %s\n", name, errors == 0 ? "PASS" : "FAIL");
    return errors;
}
}  // namespace gemm_tb
