// softmax_f32: the ports; the body is hw/include/softmax.hpp.
#include "softmax_f32.hpp"

#include "../../include/softmax.hpp"

using namespace softmax_f32_config;

void softmax_f32(const float* a, const float* b, float* c, int op, int outer, int length, int inner, int a_outer,
                 int a_length, int a_inner, int b_outer, int b_length, int b_inner, int c_outer, int c_length,
                 int c_inner, int column) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=op bundle=control
#pragma HLS INTERFACE s_axilite port=outer bundle=control
#pragma HLS INTERFACE s_axilite port=length bundle=control
#pragma HLS INTERFACE s_axilite port=inner bundle=control
#pragma HLS INTERFACE s_axilite port=a_outer bundle=control
#pragma HLS INTERFACE s_axilite port=a_length bundle=control
#pragma HLS INTERFACE s_axilite port=a_inner bundle=control
#pragma HLS INTERFACE s_axilite port=b_outer bundle=control
#pragma HLS INTERFACE s_axilite port=b_length bundle=control
#pragma HLS INTERFACE s_axilite port=b_inner bundle=control
#pragma HLS INTERFACE s_axilite port=c_outer bundle=control
#pragma HLS INTERFACE s_axilite port=c_length bundle=control
#pragma HLS INTERFACE s_axilite port=c_inner bundle=control
#pragma HLS INTERFACE s_axilite port=column bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    if (length <= 0) return;
    softmax::rows<Shape>(a, b, c, op, outer, length, inner, {a_outer, a_length, a_inner},
                         {b_outer, b_length, b_inner}, {c_outer, c_length, c_inner}, column != 0);
}
