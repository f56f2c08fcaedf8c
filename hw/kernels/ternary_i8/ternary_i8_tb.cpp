// Testbench of ternary_i8: every function on an example, and walks over strided operands.
#include "ternary_i8.hpp"

#include "../../include/pointwise_tb.hpp"

using namespace ternary_i8_config;
static_assert(A_SCALAR == 1 && B_SCALAR == 2 && C_SCALAR == 4 && C_MASK == 8, "the numbers that the driver writes");
using Case = pointwise_tb::Example<Type, Scalar, 3>;

static const std::vector<uint8_t> NO_MASK(pointwise::COSIM_DEPTH);

static void run(const Type* const* from, Type* y, const Case& e, const int n[4], const int step[3][4]) {
    ternary_i8(from[0], from[1], from[2], NO_MASK.data(), y, e.op, 0, 0, 0, 0, e.p, e.q, n[0], n[1], n[2], n[3],
               step[0][0], step[0][1], step[0][2], step[0][3],
               step[1][0], step[1][1], step[1][2], step[1][3],
               step[2][0], step[2][1], step[2][2], step[2][3]);
}

// Operands in registers give what operands in memory give; so does a condition of bytes.
static int check_registers(const Case& e) {
    std::vector<Type> values[3], y = pointwise_tb::buffer<Type>(3), expected = pointwise_tb::buffer<Type>(1);
    const Type* from[3];
    for (int o = 0; o < 3; ++o) {
        values[o] = pointwise_tb::buffer(1, e.operands[o]);
        from[o] = values[o].data();
    }
    const int one[4] = {1, 1, 1, 1}, none[3][4] = {};
    int errors = 0;
    run(from, expected.data(), e, one, none);
    for (std::vector<Type>& value : values) value[0] = Type(pointwise_tb::GUARD);  // what memory holds does not count
    ternary_i8(from[0], from[1], from[2], NO_MASK.data(), y.data(), e.op, A_SCALAR | B_SCALAR | C_SCALAR, e.operands[0],
               e.operands[1], e.operands[2], e.p, e.q, 1, 1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
    for (Type found : y) errors += found != expected[0];
    const int bits[] = {A_SCALAR, B_SCALAR, C_SCALAR};
    for (int in_register = 0; in_register < 3; ++in_register) {
        for (int o = 0; o < 3; ++o) values[o][0] = o == in_register ? Type(pointwise_tb::GUARD) : e.operands[o];
        ternary_i8(from[0], from[1], from[2], NO_MASK.data(), y.data(), e.op, bits[in_register], e.operands[0],
                   e.operands[1], e.operands[2], e.p, e.q, 1, 1, 1, 3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0);
        for (Type found : y) errors += found != expected[0];
    }
    std::vector<uint8_t> condition(pointwise::COSIM_DEPTH);
    condition[0] = 255;
    for (int o = 0; o < 2; ++o) values[o][0] = e.operands[o];
    values[2][0] = 1;
    run(from, expected.data(), e, one, none);
    values[2][0] = Type(pointwise_tb::GUARD);
    ternary_i8(from[0], from[1], from[2], condition.data(), y.data(), e.op, C_MASK, 0, 0, 0, e.p, e.q, 1, 1, 1, 3, 0, 0, 0,
               0, 0, 0, 0, 0, 0, 0, 0, 0);
    for (Type found : y) errors += found != expected[0];
    if (errors != 0) std::printf("  %s: an operand in a register: FAIL\n", e.name);
    return errors;
}

// A condition of bytes walks as an operand does, whatever the step from byte to byte.
static int check_mask(int op, const int (&n)[4], int step) {
    const int total = n[0] * n[1] * n[2] * n[3];
    std::vector<Type> a = pointwise_tb::buffer<Type>(total), b = a, y = pointwise_tb::buffer(total + 1, Type(pointwise_tb::GUARD));
    std::vector<uint8_t> condition(step * total + 1);
    cosim::deepen(pointwise::COSIM_DEPTH, a, b, y, condition);
    for (size_t i = 0; i < condition.size(); ++i) condition[i] = i * 37 % 11 < 5 ? 0 : i % 2 + 1;
    for (int i = 0; i < total; ++i) {
        a[i] = static_cast<Type>(i % 61);
        b[i] = static_cast<Type>(i % 59 - 60);
    }
    const int plane = n[2] * n[3];
    ternary_i8(a.data(), b.data(), a.data(), condition.data(), y.data(), op, C_MASK, 0, 0, 0, 0, 0, n[0], n[1], n[2], n[3],
               n[1] * plane, plane, n[3], 1, n[1] * plane, plane, n[3], 1, step * n[1] * plane, step * plane, step * n[3], step);
    int errors = y[total] != Type(pointwise_tb::GUARD);
    for (int i = 0; i < total; ++i) errors += y[i] != (condition[i * step] != 0 ? a[i] : b[i]);
    std::printf("bytes as condition, step %d %s\n", step, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    const Case cases[] = {  // name, opcode as the driver writes it, p, q, operands, result, room
        {"addcmul", 0, 2, 0, {1, -3, 4}, -23, 0},
        {"where", 2, 0, 0, {3, 4, 0}, 4, 0},
        {"where", 2, 0, 0, {3, 4, 1}, 3, 0},
        {"where", 2, 0, 0, {3, 4, -1}, 3, 0},
        {"clamp", 4, 0, 0, {-7, -3, 4}, -3, 0},
        {"clamp", 4, 0, 0, {7, -3, 4}, 4, 0},
        {"clamp", 4, 0, 0, {2, -3, 4}, 2, 0},
        {"clamp", 4, 0, 0, {2, 4, -3}, -3, 0},
    };
    int errors = 0;
    for (const Case& e : cases) errors += pointwise_tb::check_example(e, run) + check_registers(e);
    const int walks[][4] = {{2, 3, 4, 5}, {1, 1, 700, 3}, {3, 1, 2, 1030}, {2, 3, 40, 9}};
    for (const auto& n : walks) errors += pointwise_tb::check_walk(cases[0], run, n);
    for (int step : {0, 1, 2}) errors += check_mask(WHERE, walks[3], step);
    return errors == 0 ? 0 : 1;
}
