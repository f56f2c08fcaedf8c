// ternary_f32: tiles are loaded, computed and stored at the same time; a line of compute a function.
#include "ternary_f32.hpp"

#include "../../include/pointwise.hpp"
#include "../../include/pointwise_math.hpp"

using namespace ternary_f32_config;
using namespace pointwise;

static void compute(const Type a_tile[TILE], const Type b_tile[TILE], const Type c_tile[TILE], Type y_tile[TILE], int t, Sizes n,
                    int op, [[maybe_unused]] Scalar p, [[maybe_unused]] Scalar q) {
    const int count = count_of(t, n);
    switch (op) {
        TERNARY(ADDCMUL, 1, std::fma(p * b, c, a))
        TERNARY(ADDCDIV, 1, a + p * b / c)
        TERNARY(WHERE, 1, c != 0 ? a : b)
        TERNARY(LERP, 1, lerp(a, b, c))
        TERNARY(CLAMP, 1, smaller(larger(a, b), c))
        default:
            break;
    }
}

// Dataflow over the loop: a tile is loaded while the one before is computed and a third is stored.
static void walk(const Type* a, const Type* b, const Type* c, const uint8_t* mask, Type* y, int op, int scalars, Scalar sa, Scalar sb, Scalar sc, Scalar p, Scalar q,
                 Sizes n, Steps by_a, Steps by_b, Steps by_c, int tiles) {
tile_loop:
    for (int t = 0; t < tiles; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
#pragma HLS DATAFLOW
        Type a_tile[TILE], b_tile[TILE], c_tile[TILE], y_tile[TILE];
        load_or_fill(a, scalars & A_SCALAR, sa, a_tile, t, n, by_a);
        load_or_fill(b, scalars & B_SCALAR, sb, b_tile, t, n, by_b);
        load_condition(mask, scalars & C_MASK, c, scalars & C_SCALAR, sc, c_tile, t, n, by_c);
        compute(a_tile, b_tile, c_tile, y_tile, t, n, op, p, q);
        store(y_tile, y, t, n);
    }
}

void ternary_f32(const float* a, const float* b, const float* c, const uint8_t* mask, float* y,
                 int op, int scalars, float sa, float sb, float sc, float p, float q,
                 int n0, int n1, int n2, int n3,
                 int a0, int a1, int a2, int a3,
                 int b0, int b1, int b2, int b3,
                 int c0, int c1, int c2, int c3) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=mask bundle=gmem3 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=y bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=mask bundle=control
#pragma HLS INTERFACE s_axilite port=y bundle=control
#pragma HLS INTERFACE s_axilite port=op bundle=control
#pragma HLS INTERFACE s_axilite port=scalars bundle=control
#pragma HLS INTERFACE s_axilite port=sa bundle=control
#pragma HLS INTERFACE s_axilite port=sb bundle=control
#pragma HLS INTERFACE s_axilite port=sc bundle=control
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
#pragma HLS INTERFACE s_axilite port=c0 bundle=control
#pragma HLS INTERFACE s_axilite port=c1 bundle=control
#pragma HLS INTERFACE s_axilite port=c2 bundle=control
#pragma HLS INTERFACE s_axilite port=c3 bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    const Sizes n = {n0, n1, n2, n3};
    walk(a, b, c, mask, y, op, scalars, sa, sb, sc, p, q, n, Steps{a0, a1, a2, a3}, Steps{b0, b1, b2, b3}, Steps{c0, c1, c2, c3}, tiles_of(n));
}
