// Checks that testbenches of pointwise kernels share: each function on an example, and each walk
// against the same elements side by side.
#pragma once
#include <cmath>
#include <cstdio>
#include <vector>

#include "cosim.hpp"
#include "pointwise_walk.hpp"

namespace pointwise_tb {
constexpr int LENGTHS[] = {0, 1, 17, 1023, 1024, 1025, 3 * 1024 + 5};
constexpr int GUARD = 77;

template <class Type, class Scalar, int OPERANDS> struct Example {
    const char* name;
    int op;
    Scalar p, q;
    Type operands[OPERANDS];
    Type result;
    double room;  // relative; 0 where the function is exact
};

// Calls the kernel: operands, result, opcode, parameters, four sizes, four steps an operand.
template <class Type, class Scalar, int OPERANDS>
using Run = void (*)(const Type* const* from, Type* y, const Example<Type, Scalar, OPERANDS>& e, const int n[4],
                     const int step[OPERANDS][4]);

// Equal but for rounding: NaN is NaN, and a zero has its sign.
inline bool alike(double found, double expected, double room = 0) {
    if (std::isnan(expected) || std::isinf(expected)) return std::isnan(expected) ? std::isnan(found) : found == expected;
    if (expected == 0) return found == 0 && std::signbit(found) == std::signbit(expected);
    return std::fabs(found - expected) <= room * std::fabs(expected);
}

template <class Type> std::vector<Type> buffer(int size, Type value = 0) {
    std::vector<Type> made;
    cosim::deepen(pointwise::COSIM_DEPTH, made);
    made.assign(size, value);
    return made;
}

template <class Type, class Scalar, int OPERANDS>
int check_example(const Example<Type, Scalar, OPERANDS>& e, Run<Type, Scalar, OPERANDS> run) {
    int errors = 0;
    for (int length : LENGTHS) {
        std::vector<Type> values[OPERANDS], y = buffer(length + 1, Type(GUARD));
        const Type* from[OPERANDS];
        int step[OPERANDS][4] = {};
        for (int o = 0; o < OPERANDS; ++o) {
            values[o] = buffer(length, e.operands[o]);
            from[o] = values[o].data();
            step[o][3] = 1;
        }
        const int n[4] = {1, 1, 1, length};
        run(from, y.data(), e, n, step);
        for (int i = 0; i < length; ++i) {
            if (!alike(y[i], e.result, e.room) && errors++ == 0)
                std::printf("  %s first wrong index %d: %g, expected %g\n", e.name, i, double(y[i]), double(e.result));
        }
        errors += y[length] != Type(GUARD);
    }
    std::printf("%-20s %s\n", e.name, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

// Sizes n; the operands lie transposed, repeated along the second loop, and every other element.
template <class Type, class Scalar, int OPERANDS>
int check_walk(const Example<Type, Scalar, OPERANDS>& e, Run<Type, Scalar, OPERANDS> run, const int (&n)[4]) {
    const int total = n[0] * n[1] * n[2] * n[3];
    const int walks[3][4] = {{1, n[0], n[0] * n[1], n[0] * n[1] * n[2]},
                             {n[2] * n[3], 0, n[3], 1},
                             {2 * n[1] * n[2] * n[3], 2 * n[2] * n[3], 2 * n[3], 2}};
    std::vector<Type> values[OPERANDS], chosen[OPERANDS], y = buffer(total + 1, Type(GUARD)), expected = y;
    const Type *from[OPERANDS], *side_by_side[OPERANDS];
    int step[OPERANDS][4], ones[OPERANDS][4] = {};
    for (int o = 0; o < OPERANDS; ++o) {
        values[o] = buffer<Type>(2 * total);
        chosen[o] = buffer<Type>(0);
        for (int i = 0; i < 2 * total; ++i) values[o][i] = static_cast<Type>((i * 37 + o * 11) % 61 + 1);
        for (int d = 0; d < 4; ++d) step[o][d] = walks[(o + n[3]) % 3][d];
        for (int i = 0; i < total; ++i) {
            const int l = i % n[3], k = i / n[3] % n[2], j = i / n[3] / n[2] % n[1], outer = i / n[3] / n[2] / n[1];
            chosen[o].push_back(values[o][outer * step[o][0] + j * step[o][1] + k * step[o][2] + l * step[o][3]]);
        }
        from[o] = values[o].data();
        side_by_side[o] = chosen[o].data();
        ones[o][3] = 1;
    }
    cosim::deepen(pointwise::COSIM_DEPTH, expected);
    const int row[4] = {1, 1, 1, total};
    run(from, y.data(), e, n, step);
    run(side_by_side, expected.data(), e, row, ones);
    int errors = 0;
    for (int i = 0; i <= total; ++i) {
        if (y[i] != expected[i] && errors++ == 0)
            std::printf("  walk of %s first wrong index %d: %g, expected %g\n", e.name, i, double(y[i]), double(expected[i]));
    }
    std::printf("%s [%d, %d, %d, %d] %s\n", e.name, n[0], n[1], n[2], n[3], errors == 0 ? "PASS" : "FAIL");
    return errors;
}
}  // namespace pointwise_tb
