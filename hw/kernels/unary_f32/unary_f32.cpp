// unary_f32: tiles are loaded, computed and stored at the same time; a line of compute a function.
#include "unary_f32.hpp"

#include "../../include/pointwise.hpp"
#include "../../include/pointwise_math.hpp"

using namespace unary_f32_config;
using namespace pointwise;

static void compute(const Type x_tile[TILE], Type y_tile[TILE], int t, Sizes n,
                    int op, [[maybe_unused]] Scalar p, [[maybe_unused]] Scalar q) {
    const int count = count_of(t, n);
    switch (op) {
        UNARY(ABS, 1, std::fabs(x))
        UNARY(NEG, 1, -x)
        UNARY(RELU, 1, x < 0 ? 0 : x)
        UNARY(SIGMOID, 1, 1 / (1 + std::exp(-x)))
        UNARY(TANH, 5, std::tanh(x))
        UNARY(EXP, 1, std::exp(x))
        UNARY(LOG, 1, std::log(x))
        UNARY(SQRT, 1, std::sqrt(x))
        UNARY(RSQRT, 1, 1 / std::sqrt(x))
        UNARY(RECIPROCAL, 1, 1 / x)
        UNARY(FLOOR, 1, std::floor(x))
        UNARY(CEIL, 1, std::ceil(x))
        UNARY(ROUND, 1, std::rint(x))
        UNARY(SIGN, 1, (x > 0) - (x < 0))
        UNARY(CLAMP, 1, between(x, p, q))
        UNARY(THRESHOLD, 1, x <= p ? q : x)
        UNARY(GELU, 6, gelu(x))
        UNARY(GELU_TANH, 6, gelu_tanh(x))
        UNARY(SILU, 1, x / (1 + std::exp(-x)))
        UNARY(HARDTANH, 1, between(x, p, q))
        UNARY(LEAKY_RELU, 1, x > 0 ? x : x * p)
        UNARY(SQUARE, 1, x * x)
        UNARY(INVERSE_SQUARE, 1, 1 / (x * x))
        default:
            break;
    }
}

// Dataflow over the loop: a tile is loaded while the one before is computed and a third is stored.
static void walk(const Type* x, Type* y, int op, Scalar p, Scalar q,
                 Sizes n, Steps by_x, int tiles) {
tile_loop:
    for (int t = 0; t < tiles; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
#pragma HLS DATAFLOW
        Type x_tile[TILE], y_tile[TILE];
        load(x, x_tile, t, n, by_x);
        compute(x_tile, y_tile, t, n, op, p, q);
        store(y_tile, y, t, n);
    }
}

void unary_f32(const float* x, float* y,
               int op, float p, float q,
               int n0, int n1, int n2, int n3,
               int x0, int x1, int x2, int x3) {
#pragma HLS INTERFACE m_axi port=x bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=y bundle=gmem1 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=x bundle=control
#pragma HLS INTERFACE s_axilite port=y bundle=control
#pragma HLS INTERFACE s_axilite port=op bundle=control
#pragma HLS INTERFACE s_axilite port=p bundle=control
#pragma HLS INTERFACE s_axilite port=q bundle=control
#pragma HLS INTERFACE s_axilite port=n0 bundle=control
#pragma HLS INTERFACE s_axilite port=n1 bundle=control
#pragma HLS INTERFACE s_axilite port=n2 bundle=control
#pragma HLS INTERFACE s_axilite port=n3 bundle=control
#pragma HLS INTERFACE s_axilite port=x0 bundle=control
#pragma HLS INTERFACE s_axilite port=x1 bundle=control
#pragma HLS INTERFACE s_axilite port=x2 bundle=control
#pragma HLS INTERFACE s_axilite port=x3 bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    const Sizes n = {n0, n1, n2, n3};
    walk(x, y, op, p, q, n, Steps{x0, x1, x2, x3}, tiles_of(n));
}
