// Testbench of unary_i32: every function on an example, and walks over strided operands.
#include "unary_i32.hpp"

#include "../../include/pointwise_tb.hpp"

using namespace unary_i32_config;
using Case = pointwise_tb::Example<Type, Scalar, 1>;

static void run(const Type* const* from, Type* y, const Case& e, const int n[4], const int step[1][4]) {
    unary_i32(from[0], y, e.op, e.p, e.q, n[0], n[1], n[2], n[3],
              step[0][0], step[0][1], step[0][2], step[0][3]);
}

int main() {
    const Case cases[] = {
        {"abs", ABS, 0, 0, {-7}, 7},
        {"abs", ABS, 0, 0, {7}, 7},
        {"neg", NEG, 0, 0, {-7}, 7},
        {"relu", RELU, 0, 0, {-7}, 0},
        {"relu", RELU, 0, 0, {7}, 7},
        {"relu", RELU, 0, 0, {0}, 0},
        {"sign", SIGN, 0, 0, {-7}, -1},
        {"sign", SIGN, 0, 0, {7}, 1},
        {"sign", SIGN, 0, 0, {0}, 0},
        {"clamp", CLAMP, -1, 1, {-7}, -1},
        {"clamp", CLAMP, -1, 1, {7}, 1},
        {"clamp", CLAMP, -1, 1, {0}, 0},
        {"threshold", THRESHOLD, 1, 20, {-7}, 20},
        {"threshold", THRESHOLD, 1, 20, {1}, 20},
        {"threshold", THRESHOLD, 1, 20, {2}, 2},
        {"hardtanh", HARDTANH, -1, 1, {7}, 1},
        {"hardtanh", HARDTANH, -1, 1, {-7}, -1},
        {"hardtanh", HARDTANH, -1, 1, {0}, 0},
        {"square", SQUARE, 0, 0, {-7}, 49},
    };
    int errors = 0;
    for (const Case& e : cases) errors += pointwise_tb::check_example(e, run);
    const int walks[][4] = {{2, 3, 4, 5}, {1, 1, 700, 3}, {3, 1, 2, 1030}, {2, 3, 40, 9}};
    for (const auto& n : walks) errors += pointwise_tb::check_walk(cases[0], run, n);
    return errors == 0 ? 0 : 1;
}
