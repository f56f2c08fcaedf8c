// Testbench of binary_i8: every function on an example, and walks over strided operands.
#include "binary_i8.hpp"

#include "../../include/pointwise_tb.hpp"

using namespace binary_i8_config;
static_assert(A_SCALAR == 1 && B_SCALAR == 2, "the numbers that the driver writes");
using Case = pointwise_tb::Example<Type, Scalar, 2>;

static void run(const Type* const* from, Type* y, const Case& e, const int n[4], const int step[2][4]) {
    binary_i8(from[0], from[1], y, e.op, 0, 0, e.p, e.q, n[0], n[1], n[2], n[3],
              step[0][0], step[0][1], step[0][2], step[0][3],
              step[1][0], step[1][1], step[1][2], step[1][3]);
}

// Operands in registers give what operands in memory give.
static int check_registers(const Case& e) {
    std::vector<Type> values[2], y = pointwise_tb::buffer<Type>(3), expected = pointwise_tb::buffer<Type>(1);
    const Type* from[2];
    for (int o = 0; o < 2; ++o) {
        values[o] = pointwise_tb::buffer(1, e.operands[o]);
        from[o] = values[o].data();
    }
    const int one[4] = {1, 1, 1, 1}, none[2][4] = {};
    int errors = 0;
    run(from, expected.data(), e, one, none);
    values[0][0] = Type(pointwise_tb::GUARD);  // what memory holds does not count
    binary_i8(from[0], from[1], y.data(), e.op, A_SCALAR, e.operands[0], e.p, e.q, 1, 1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0);
    for (Type found : y) errors += !pointwise_tb::alike(found, expected[0]);
    values[0][0] = e.operands[0];
    values[1][0] = Type(pointwise_tb::GUARD);
    binary_i8(from[0], from[1], y.data(), e.op, B_SCALAR, e.operands[1], e.p, e.q, 1, 1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0);
    for (Type found : y) errors += !pointwise_tb::alike(found, expected[0]);
    if (errors != 0) std::printf("  %s: an operand in a register: FAIL\n", e.name);
    return errors;
}

int main() {
    const Case cases[] = {  // name, opcode as the driver writes it, p, q, operands, result, room
        {"add", 0, 0, 0, {100, -3}, 97, 0},
        {"sub", 1, 0, 0, {100, -3}, 103, 0},
        {"mul", 2, 0, 0, {10, -3}, -30, 0},
        {"div_trunc", 4, 0, 0, {-7, 2}, -3, 0},
        {"div_trunc", 4, 0, 0, {7, -1}, -7, 0},
        {"div_trunc", 4, 0, 0, {-7, -2}, 3, 0},
        {"div_trunc", 4, 0, 0, {7, -2}, -3, 0},
        {"div_trunc", 4, 0, 0, {6, -3}, -2, 0},
        {"div_trunc", 4, 0, 0, {-7, -1}, 7, 0},
        {"div_floor", 5, 0, 0, {-7, 2}, -4, 0},
        {"div_floor", 5, 0, 0, {7, -1}, -7, 0},
        {"div_floor", 5, 0, 0, {7, -2}, -4, 0},
        {"div_floor", 5, 0, 0, {-7, -2}, 3, 0},
        {"div_floor", 5, 0, 0, {7, 2}, 3, 0},
        {"div_floor", 5, 0, 0, {6, -3}, -2, 0},
        {"div_floor", 5, 0, 0, {-6, 3}, -2, 0},
        {"div_floor", 5, 0, 0, {-7, -1}, 7, 0},
        {"remainder", 6, 0, 0, {-7, 3}, 2, 0},
        {"remainder", 6, 0, 0, {7, -3}, -2, 0},
        {"remainder", 6, 0, 0, {-7, -3}, -1, 0},
        {"remainder", 6, 0, 0, {7, 3}, 1, 0},
        {"remainder", 6, 0, 0, {6, -3}, 0, 0},
        {"remainder", 6, 0, 0, {7, -1}, 0, 0},
        {"remainder", 6, 0, 0, {7, -2}, -1, 0},
        {"maximum", 7, 0, 0, {-7, 3}, 3, 0},
        {"maximum", 7, 0, 0, {7, -3}, 7, 0},
        {"minimum", 8, 0, 0, {-7, 3}, -7, 0},
        {"minimum", 8, 0, 0, {7, -3}, -3, 0},
        {"pow", 9, 0, 0, {-3, 3}, -27, 0},
        {"pow", 9, 0, 0, {2, 6}, 64, 0},
        {"pow", 9, 0, 0, {3, 1}, 3, 0},
        {"pow", 9, 0, 0, {3, 0}, 1, 0},
        {"pow", 9, 0, 0, {0, 0}, 1, 0},
        {"pow", 9, 0, 0, {1, -2}, 1, 0},
        {"pow", 9, 0, 0, {-1, -2}, 1, 0},
        {"pow", 9, 0, 0, {-1, -3}, -1, 0},
        {"pow", 9, 0, 0, {2, -1}, 0, 0},
        {"pow", 9, 0, 0, {-2, -2}, 0, 0},
        {"pow", 9, 0, 0, {0, -2}, 0, 0},
        {"add_scaled", 10, 2, 0, {100, -3}, 94, 0},
    };
    int errors = 0;
    for (const Case& e : cases) errors += pointwise_tb::check_example(e, run) + check_registers(e);
    const int walks[][4] = {{2, 3, 4, 5}, {1, 1, 700, 3}, {3, 1, 2, 1030}, {2, 3, 40, 9}};
    for (const auto& n : walks) errors += pointwise_tb::check_walk(cases[0], run, n);
    return errors == 0 ? 0 : 1;
}
