// reduce_f32: the ports; the body is hw/include/reduce.hpp.
#include "reduce_f32.hpp"

#include "../../include/reduce_results.hpp"

using namespace reduce_f32_config;

void reduce_f32(const float* x, float* y, int64_t* index, int term, int combine, int finish, int k0, int k1, int k2,
                int r0, int r1, int r2, int x_k0, int x_k1, int x_k2, int x_r0, int x_r1, int x_r2, int y_k0, int y_k1,
                int y_k2, int column, float divisor, float p) {
#pragma HLS INTERFACE m_axi port=x bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=y bundle=gmem1 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=index bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=x bundle=control
#pragma HLS INTERFACE s_axilite port=y bundle=control
#pragma HLS INTERFACE s_axilite port=index bundle=control
#pragma HLS INTERFACE s_axilite port=term bundle=control
#pragma HLS INTERFACE s_axilite port=combine bundle=control
#pragma HLS INTERFACE s_axilite port=finish bundle=control
#pragma HLS INTERFACE s_axilite port=k0 bundle=control
#pragma HLS INTERFACE s_axilite port=k1 bundle=control
#pragma HLS INTERFACE s_axilite port=k2 bundle=control
#pragma HLS INTERFACE s_axilite port=r0 bundle=control
#pragma HLS INTERFACE s_axilite port=r1 bundle=control
#pragma HLS INTERFACE s_axilite port=r2 bundle=control
#pragma HLS INTERFACE s_axilite port=x_k0 bundle=control
#pragma HLS INTERFACE s_axilite port=x_k1 bundle=control
#pragma HLS INTERFACE s_axilite port=x_k2 bundle=control
#pragma HLS INTERFACE s_axilite port=x_r0 bundle=control
#pragma HLS INTERFACE s_axilite port=x_r1 bundle=control
#pragma HLS INTERFACE s_axilite port=x_r2 bundle=control
#pragma HLS INTERFACE s_axilite port=y_k0 bundle=control
#pragma HLS INTERFACE s_axilite port=y_k1 bundle=control
#pragma HLS INTERFACE s_axilite port=y_k2 bundle=control
#pragma HLS INTERFACE s_axilite port=column bundle=control
#pragma HLS INTERFACE s_axilite port=divisor bundle=control
#pragma HLS INTERFACE s_axilite port=p bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    if (r0 <= 0 || r1 <= 0 || r2 <= 0) return;
    reduce::results<Shape>(x, y, index, {term, combine, finish, divisor, p}, {k0, k1, k2}, {x_k0, x_k1, x_k2},
                           {y_k0, y_k1, y_k2}, { {r0, r1, r2}, {x_r0, x_r1, x_r2}, x_k2, column != 0});
}
