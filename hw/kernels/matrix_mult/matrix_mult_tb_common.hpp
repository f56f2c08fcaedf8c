// What the testbenches of matrix_mult and matrix_mult_fabric share.
#pragma once
#include <cstdint>
#include <cstdio>
#include <vector>

#include "matrix_mult_core.hpp"

namespace matrix_mult_tb {
constexpr int SIZE = matrix_mult_core::SIZE;
enum Data { RANDOM, EXTREME, IDENTITY, WIDE };
constexpr const char* NAMES[] = {"random int8", "extreme values", "identity", "more than a byte in the containers"};

// A fixed generator (numerical recipes' LCG): the same data on every machine and in co-simulation.
inline int32_t next(uint32_t& state) {
    state = state * 1664525u + 1013904223u;
    return static_cast<int32_t>(state);
}

inline int32_t value(Data data, bool right, int row, int column, uint32_t& state) {
    const int32_t bits = next(state);
    switch (data) {
    case EXTREME: return right && bits < 0 ? 127 : -128;
    case IDENTITY: return right ? row == column : bits >> 24;
    case WIDE: return bits;
    default: return bits >> 24;
    }
}

template <typename Kernel>
int check(const char* name, Kernel kernel, Data data) {
    const int32_t guard = 0x5a5a5a5a;
    std::vector<int32_t> in1(SIZE * SIZE), in2(SIZE * SIZE), out(SIZE * SIZE, guard);
    uint32_t state = 2026;
    for (int i = 0; i < SIZE * SIZE; ++i) in1[i] = value(data, false, i / SIZE, i % SIZE, state);
    for (int i = 0; i < SIZE * SIZE; ++i) in2[i] = value(data, true, i / SIZE, i % SIZE, state);
    const std::vector<int32_t> left = in1, right = in2;
    kernel(in1.data(), in2.data(), out.data());

    int errors = in1 == left && in2 == right ? 0 : 1;
    if (errors) std::printf("  an input was changed\n");
    for (int i = 0; i < SIZE; ++i) {
        for (int j = 0; j < SIZE; ++j) {
            int32_t expected = 0;
            for (int k = 0; k < SIZE; ++k) {
                expected += static_cast<int8_t>(left[i * SIZE + k]) * static_cast<int8_t>(right[k * SIZE + j]);
            }
            const int32_t found = out[i * SIZE + j];
            if (found != expected && errors++ == 0) {
                std::printf("  first wrong element [%d][%d]: %d, expected %d\n", i, j, found, expected);
            }
        }
    }
    std::printf("%s %s %s\n", name, NAMES[data], errors == 0 ? "PASS" : "FAIL");
    return errors;
}

template <typename Kernel>
int check_all(const char* name, Kernel kernel) {
    int errors = 0;
    for (const Data data : {RANDOM, EXTREME, IDENTITY, WIDE}) errors += check(name, kernel, data);
    return errors;
}
}  // namespace matrix_mult_tb
