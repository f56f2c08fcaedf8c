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
    const Case cases[] = {
        {"abs", ABS, 0.0, 0.0, {-2.5}, 2.5},
        {"neg", NEG, 0.0, 0.0, {-2.5}, 2.5},
        {"relu", RELU, 0.0, 0.0, {-2.5}, 0.0},
        {"relu", RELU, 0.0, 0.0, {2.5}, 2.5},
        {"relu", RELU, 0.0, 0.0, {-0.0}, -0.0},
        {"relu", RELU, 0.0, 0.0, {NAN}, NAN},
        {"sigmoid", SIGMOID, 0.0, 0.0, {2.0}, 0.880797078},
        {"sigmoid", SIGMOID, 0.0, 0.0, {-0.5}, 0.377540669},
        {"tanh", TANH, 0.0, 0.0, {0.5}, 0.462117157},
        {"tanh", TANH, 0.0, 0.0, {-0.5}, -0.462117157},
        {"exp", EXP, 0.0, 0.0, {1.0}, 2.71828183},
        {"log", LOG, 0.0, 0.0, {10.0}, 2.30258509},
        {"sqrt", SQRT, 0.0, 0.0, {6.25}, 2.5},
        {"rsqrt", RSQRT, 0.0, 0.0, {6.25}, 0.4},
        {"reciprocal", RECIPROCAL, 0.0, 0.0, {8.0}, 0.125},
        {"floor", FLOOR, 0.0, 0.0, {-2.5}, -3.0},
        {"floor", FLOOR, 0.0, 0.0, {2.5}, 2.0},
        {"floor", FLOOR, 0.0, 0.0, {3.0}, 3.0},
        {"ceil", CEIL, 0.0, 0.0, {-2.5}, -2.0},
        {"ceil", CEIL, 0.0, 0.0, {2.5}, 3.0},
        {"ceil", CEIL, 0.0, 0.0, {3.0}, 3.0},
        {"round", ROUND, 0.0, 0.0, {-2.5}, -2.0},
        {"round", ROUND, 0.0, 0.0, {3.5}, 4.0},
        {"round", ROUND, 0.0, 0.0, {2.75}, 3.0},
        {"sign", SIGN, 0.0, 0.0, {-2.5}, -1.0},
        {"sign", SIGN, 0.0, 0.0, {2.5}, 1.0},
        {"sign", SIGN, 0.0, 0.0, {0.0}, 0.0},
        {"sign", SIGN, 0.0, 0.0, {NAN}, 0.0},
        {"clamp", CLAMP, -1.0, 1.0, {-2.5}, -1.0},
        {"clamp", CLAMP, -1.0, 1.0, {2.5}, 1.0},
        {"clamp", CLAMP, -1.0, 1.0, {0.5}, 0.5},
        {"clamp", CLAMP, -1.0, 1.0, {NAN}, NAN},
        {"threshold", THRESHOLD, 1.0, 20.0, {0.5}, 20.0},
        {"threshold", THRESHOLD, 1.0, 20.0, {1.0}, 20.0},
        {"threshold", THRESHOLD, 1.0, 20.0, {1.5}, 1.5},
        {"threshold", THRESHOLD, 1.0, 20.0, {NAN}, NAN},
        {"gelu", GELU, 0.0, 0.0, {1.0}, 0.841344746},
        {"gelu", GELU, 0.0, 0.0, {-0.5}, -0.154268771},
        {"gelu", GELU, 0.0, 0.0, {2.0}, 1.95449972},
        {"gelu_tanh", GELU_TANH, 0.0, 0.0, {1.0}, 0.84119199},
        {"gelu_tanh", GELU_TANH, 0.0, 0.0, {-0.5}, -0.154285997},
        {"gelu_tanh", GELU_TANH, 0.0, 0.0, {2.0}, 1.95459768},
        {"silu", SILU, 0.0, 0.0, {2.0}, 1.761594156},
        {"silu", SILU, 0.0, 0.0, {-0.5}, -0.188770334},
        {"hardtanh", HARDTANH, -1.0, 1.0, {2.5}, 1.0},
        {"hardtanh", HARDTANH, -1.0, 1.0, {-2.5}, -1.0},
        {"hardtanh", HARDTANH, -1.0, 1.0, {0.5}, 0.5},
        {"hardtanh", HARDTANH, -1.0, 1.0, {NAN}, NAN},
        {"leaky_relu", LEAKY_RELU, 0.125, 0.0, {-2.0}, -0.25},
        {"leaky_relu", LEAKY_RELU, 0.125, 0.0, {2.0}, 2.0},
        {"leaky_relu", LEAKY_RELU, 0.125, 0.0, {0.0}, 0.0},
        {"leaky_relu", LEAKY_RELU, 0.125, 0.0, {NAN}, NAN},
        {"square", SQUARE, 0.0, 0.0, {-2.5}, 6.25},
        {"inverse_square", INVERSE_SQUARE, 0.0, 0.0, {-2.0}, 0.25},
    };
    int errors = 0;
    for (const Case& e : cases) errors += pointwise_tb::check_example(e, run);
    const int walks[][4] = {{2, 3, 4, 5}, {1, 1, 700, 3}, {3, 1, 2, 1030}, {2, 3, 40, 9}};
    for (const auto& n : walks) errors += pointwise_tb::check_walk(cases[0], run, n);
    return errors == 0 ? 0 : 1;
}
