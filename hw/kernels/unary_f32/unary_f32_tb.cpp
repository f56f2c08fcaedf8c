// Testbench of unary_f32: every function on an example, and walks over strided operands.
#include "unary_f32.hpp"

#include "../../include/pointwise_tb.hpp"

using namespace unary_f32_config;
using Case = pointwise_tb::Example<Type, Scalar, 1>;

static void run(const Type* const* from, Type* y, const Case& e, const int n[4], const int step[1][4]) {
    unary_f32(from[0], y, e.op, e.p, e.q, n[0], n[1], n[2], n[3],
              step[0][0], step[0][1], step[0][2], step[0][3]);
}

int main() {
    const Case cases[] = {  // name, opcode as the driver writes it, p, q, operands, result, room
        {"abs", 0, 0.0, 0.0, {-2.5}, 2.5, 0},
        {"neg", 1, 0.0, 0.0, {-2.5}, 2.5, 0},
        {"relu", 2, 0.0, 0.0, {-2.5}, 0.0, 0},
        {"relu", 2, 0.0, 0.0, {2.5}, 2.5, 0},
        {"relu", 2, 0.0, 0.0, {-0.0}, -0.0, 0},
        {"relu", 2, 0.0, 0.0, {NAN}, NAN, 0},
        {"sigmoid", 3, 0.0, 0.0, {2.0}, 0.880797078, 1e-06},
        {"sigmoid", 3, 0.0, 0.0, {-0.5}, 0.377540669, 1e-06},
        {"tanh", 4, 0.0, 0.0, {0.5}, 0.462117157, 1e-06},
        {"tanh", 4, 0.0, 0.0, {-0.5}, -0.462117157, 1e-06},
        {"exp", 5, 0.0, 0.0, {1.0}, 2.71828183, 1e-06},
        {"log", 6, 0.0, 0.0, {10.0}, 2.30258509, 1e-06},
        {"sqrt", 7, 0.0, 0.0, {6.25}, 2.5, 1e-06},
        {"rsqrt", 8, 0.0, 0.0, {6.25}, 0.4, 1e-06},
        {"reciprocal", 9, 0.0, 0.0, {8.0}, 0.125, 1e-06},
        {"floor", 10, 0.0, 0.0, {-2.5}, -3.0, 0},
        {"floor", 10, 0.0, 0.0, {2.5}, 2.0, 0},
        {"floor", 10, 0.0, 0.0, {3.0}, 3.0, 0},
        {"ceil", 11, 0.0, 0.0, {-2.5}, -2.0, 0},
        {"ceil", 11, 0.0, 0.0, {2.5}, 3.0, 0},
        {"ceil", 11, 0.0, 0.0, {3.0}, 3.0, 0},
        {"round", 12, 0.0, 0.0, {-2.5}, -2.0, 0},
        {"round", 12, 0.0, 0.0, {3.5}, 4.0, 0},
        {"round", 12, 0.0, 0.0, {2.75}, 3.0, 0},
        {"sign", 13, 0.0, 0.0, {-0.5}, -1.0, 0},
        {"sign", 13, 0.0, 0.0, {0.5}, 1.0, 0},
        {"sign", 13, 0.0, 0.0, {0.0}, 0.0, 0},
        {"sign", 13, 0.0, 0.0, {NAN}, 0.0, 0},
        {"clamp", 14, -1.0, 1.0, {-2.5}, -1.0, 0},
        {"clamp", 14, -1.0, 1.0, {2.5}, 1.0, 0},
        {"clamp", 14, -1.0, 1.0, {0.5}, 0.5, 0},
        {"clamp", 14, -1.0, 1.0, {NAN}, NAN, 0},
        {"threshold", 15, 1.0, 20.0, {0.5}, 20.0, 0},
        {"threshold", 15, 1.0, 20.0, {1.0}, 20.0, 0},
        {"threshold", 15, 1.0, 20.0, {1.5}, 1.5, 0},
        {"threshold", 15, 1.0, 20.0, {NAN}, NAN, 0},
        {"gelu", 16, 0.0, 0.0, {1.0}, 0.841344746, 1e-06},
        {"gelu", 16, 0.0, 0.0, {-0.5}, -0.154268771, 1e-06},
        {"gelu", 16, 0.0, 0.0, {2.0}, 1.95449972, 1e-06},
        {"gelu_tanh", 17, 0.0, 0.0, {1.0}, 0.84119199, 1e-06},
        {"gelu_tanh", 17, 0.0, 0.0, {-0.5}, -0.154285997, 1e-06},
        {"gelu_tanh", 17, 0.0, 0.0, {2.0}, 1.95459768, 1e-06},
        {"silu", 18, 0.0, 0.0, {2.0}, 1.761594156, 1e-06},
        {"silu", 18, 0.0, 0.0, {-0.5}, -0.188770334, 1e-06},
        {"hardtanh", 19, -1.0, 1.0, {2.5}, 1.0, 0},
        {"hardtanh", 19, -1.0, 1.0, {-2.5}, -1.0, 0},
        {"hardtanh", 19, -1.0, 1.0, {0.5}, 0.5, 0},
        {"hardtanh", 19, -1.0, 1.0, {NAN}, NAN, 0},
        {"leaky_relu", 20, 0.125, 0.0, {-2.0}, -0.25, 0},
        {"leaky_relu", 20, 0.125, 0.0, {2.0}, 2.0, 0},
        {"leaky_relu", 20, 0.125, 0.0, {0.0}, 0.0, 0},
        {"leaky_relu", 20, 0.125, 0.0, {NAN}, NAN, 0},
        {"square", 21, 0.0, 0.0, {-2.5}, 6.25, 0},
        {"inverse_square", 22, 0.0, 0.0, {-2.0}, 0.25, 1e-06},
    };
    int errors = 0;
    for (const Case& e : cases) errors += pointwise_tb::check_example(e, run);
    const int walks[][4] = {{2, 3, 4, 5}, {1, 1, 700, 3}, {3, 1, 2, 1030}, {2, 3, 40, 9}};
    for (const auto& n : walks) errors += pointwise_tb::check_walk(cases[0], run, n);
    return errors == 0 ? 0 : 1;
}
