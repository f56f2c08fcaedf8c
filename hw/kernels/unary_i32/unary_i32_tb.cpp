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
    const Case cases[] = {  // name, opcode as the driver writes it, p, q, operands, result, room
        {"abs", 0, 0, 0, {-7}, 7, 0},
        {"abs", 0, 0, 0, {7}, 7, 0},
        {"neg", 1, 0, 0, {-7}, 7, 0},
        {"relu", 2, 0, 0, {-7}, 0, 0},
        {"relu", 2, 0, 0, {7}, 7, 0},
        {"relu", 2, 0, 0, {0}, 0, 0},
        {"sign", 13, 0, 0, {-1}, -1, 0},
        {"sign", 13, 0, 0, {1}, 1, 0},
        {"sign", 13, 0, 0, {0}, 0, 0},
        {"clamp", 14, -1, 1, {-7}, -1, 0},
        {"clamp", 14, -1, 1, {7}, 1, 0},
        {"clamp", 14, -1, 1, {0}, 0, 0},
        {"threshold", 15, 1, 20, {-7}, 20, 0},
        {"threshold", 15, 1, 20, {1}, 20, 0},
        {"threshold", 15, 1, 20, {2}, 2, 0},
        {"hardtanh", 19, -1, 1, {7}, 1, 0},
        {"hardtanh", 19, -1, 1, {-7}, -1, 0},
        {"hardtanh", 19, -1, 1, {0}, 0, 0},
        {"square", 21, 0, 0, {-7}, 49, 0},
    };
    int errors = 0;
    for (const Case& e : cases) errors += pointwise_tb::check_example(e, run);
    const int walks[][4] = {{2, 3, 4, 5}, {1, 1, 700, 3}, {3, 1, 2, 1030}, {2, 3, 40, 9}};
    for (const auto& n : walks) errors += pointwise_tb::check_walk(cases[0], run, n);
    return errors == 0 ? 0 : 1;
}
