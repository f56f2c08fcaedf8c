// matmul_f32: the body is matmul.hpp and matmul_store.hpp; here are the ports.
#include "matmul_f32.hpp"

#include "../../include/matmul_store.hpp"

using namespace matmul_f32_config;

void matmul_f32(const float* a, const float* b, const float* bias, float* c,
                int batch, int m, int n, int k,
                int a_matrix, int a_row, int a_column, int b_matrix, int b_row, int b_column,
                int bias_matrix, int bias_row, int bias_column, int c_matrix, int c_row, int c_column,
                float alpha, float beta, int mode) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=bias bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=bias bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=batch bundle=control
#pragma HLS INTERFACE s_axilite port=m bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=k bundle=control
#pragma HLS INTERFACE s_axilite port=a_matrix bundle=control
#pragma HLS INTERFACE s_axilite port=a_row bundle=control
#pragma HLS INTERFACE s_axilite port=a_column bundle=control
#pragma HLS INTERFACE s_axilite port=b_matrix bundle=control
#pragma HLS INTERFACE s_axilite port=b_row bundle=control
#pragma HLS INTERFACE s_axilite port=b_column bundle=control
#pragma HLS INTERFACE s_axilite port=bias_matrix bundle=control
#pragma HLS INTERFACE s_axilite port=bias_row bundle=control
#pragma HLS INTERFACE s_axilite port=bias_column bundle=control
#pragma HLS INTERFACE s_axilite port=c_matrix bundle=control
#pragma HLS INTERFACE s_axilite port=c_row bundle=control
#pragma HLS INTERFACE s_axilite port=c_column bundle=control
#pragma HLS INTERFACE s_axilite port=alpha bundle=control
#pragma HLS INTERFACE s_axilite port=beta bundle=control
#pragma HLS INTERFACE s_axilite port=mode bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    using namespace matmul;
    const Size size = {batch, m, n, k};
    const Stride sa = {a_matrix, a_row, a_column}, sb = {b_matrix, b_row, b_column};
    const Stride s_bias = {bias_matrix, bias_row, bias_column}, sc = {c_matrix, c_row, c_column};
    product<Shape>(a, b, bias, c, size, sa, sb, s_bias, sc, alpha, beta, mode);
}
