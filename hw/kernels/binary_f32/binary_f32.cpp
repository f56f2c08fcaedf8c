// binary_f32: tiles are loaded, computed and stored at the same time; a line of compute a function.
#include "binary_f32.hpp"

#include "../../include/pointwise.hpp"
#include "../../include/pointwise_math.hpp"

using namespace binary_f32_config;
using namespace pointwise;

static void compute(const Type a_tile[TILE], const Type b_tile[TILE], Type y_tile[TILE], int t, Sizes n,
                    int op, [[maybe_unused]] Scalar p, [[maybe_unused]] Scalar q) {
    const int count = count_of(t, n);
    switch (op) {
        BINARY(ADD, 1, a + b)
        BINARY(SUB, 1, a - b)
        BINARY(MUL, 1, a * b)
        BINARY(DIV, 1, a / b)
        BINARY(DIV_TRUNC, 1, std::trunc(a / b))
        BINARY_LOOP(DIV_FLOOR, floor_divide(a, b))
        BINARY_LOOP(REMAINDER, modulo(a, b))
        BINARY(MAXIMUM, 1, larger(a, b))
        BINARY(MINIMUM, 1, smaller(a, b))
        BINARY(POW, 1, power(a, b))
        BINARY(ADD_SCALED, 1, std::fma(p, b, a))
        BINARY(THRESHOLD_BACKWARD, 1, b <= p ? 0 : a)
        BINARY(SIGMOID_BACKWARD, 1, a * (1 - b) * b)
        BINARY(TANH_BACKWARD, 1, a * (1 - b * b))
        BINARY(LEAKY_RELU_BACKWARD, 1, b > 0 ? a : a * p)
        BINARY(HARDTANH_BACKWARD, 1, b > p && b < q ? a : 0)
        BINARY(SILU_BACKWARD, 1, silu_backward(a, b))
        BINARY(GELU_BACKWARD, 6, gelu_backward(a, b))
        BINARY(GELU_TANH_BACKWARD, 7, gelu_tanh_backward(a, b))
        default:
            break;
    }
}

// Dataflow over the loop: a tile is loaded while the one before is computed and a third is stored.
static void walk(const Type* a, const Type* b, Type* y, int op, int scalars, Scalar s, Scalar p, Scalar q,
                 Sizes n, Steps by_a, Steps by_b, int tiles) {
tile_loop:
    for (int t = 0; t < tiles; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
#pragma HLS DATAFLOW
        Type a_tile[TILE], b_tile[TILE], y_tile[TILE];
        load_or_fill(a, scalars & A_SCALAR, s, a_tile, t, n, by_a);
        load_or_fill(b, scalars & B_SCALAR, s, b_tile, t, n, by_b);
        compute(a_tile, b_tile, y_tile, t, n, op, p, q);
        store(y_tile, y, t, n);
    }
}

void binary_f32(const float* a, const float* b, float* y,
                int op, int scalars, float s, float p, float q,
                int n0, int n1, int n2, int n3,
                int a0, int a1, int a2, int a3,
                int b0, int b1, int b2, int b3) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=y bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=y bundle=control
#pragma HLS INTERFACE s_axilite port=op bundle=control
#pragma HLS INTERFACE s_axilite port=scalars bundle=control
#pragma HLS INTERFACE s_axilite port=s bundle=control
#pragma HLS INTERFACE s_axilite port=p bundle=control
#pragma HLS INTERFACE s_axilite port=q bundle=control
#pragma HLS INTERFACE s_axilite port=n0 bundle=control
#pragma HLS INTERFACE s_axilite port=n1 bundle=control
#pragma HLS INTERFACE s_axilite port=n2 bundle=control
#pragma HLS INTERFACE s_axilite port=n3 bundle=control
#pragma HLS INTERFACE s_axilite port=a0 bundle=control
#pragma HLS INTERFACE s_axilite port=a1 bundle=control
#pragma HLS INTERFACE s_axilite port=a2 bundle=control
#pragma HLS INTERFACE s_axilite port=a3 bundle=control
#pragma HLS INTERFACE s_axilite port=b0 bundle=control
#pragma HLS INTERFACE s_axilite port=b1 bundle=control
#pragma HLS INTERFACE s_axilite port=b2 bundle=control
#pragma HLS INTERFACE s_axilite port=b3 bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    const Sizes n = {n0, n1, n2, n3};
    walk(a, b, y, op, scalars, s, p, q, n, Steps{a0, a1, a2, a3}, Steps{b0, b1, b2, b3}, tiles_of(n));
}
