// distance_f32: the ports; the body is hw/include/distance.hpp.
#include "distance_f32.hpp"

#include "../../include/distance_run.hpp"

using namespace distance_f32_config;

void distance_f32(const float* a, const float* b, float* c, int op, int batches, int rows, int cols, int length,
                  int a_batch, int a_row, int a_step, int b_batch, int b_row, int b_step, int c_batch, int c_row,
                  float p) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=op bundle=control
#pragma HLS INTERFACE s_axilite port=batches bundle=control
#pragma HLS INTERFACE s_axilite port=rows bundle=control
#pragma HLS INTERFACE s_axilite port=cols bundle=control
#pragma HLS INTERFACE s_axilite port=length bundle=control
#pragma HLS INTERFACE s_axilite port=a_batch bundle=control
#pragma HLS INTERFACE s_axilite port=a_row bundle=control
#pragma HLS INTERFACE s_axilite port=a_step bundle=control
#pragma HLS INTERFACE s_axilite port=b_batch bundle=control
#pragma HLS INTERFACE s_axilite port=b_row bundle=control
#pragma HLS INTERFACE s_axilite port=b_step bundle=control
#pragma HLS INTERFACE s_axilite port=c_batch bundle=control
#pragma HLS INTERFACE s_axilite port=c_row bundle=control
#pragma HLS INTERFACE s_axilite port=p bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    if (length <= 0) return;
    if (op == Shape::DOT) distance::dot<Shape>(a, b, c, length, a_step, b_step);
    else
        distance::distances<Shape>(a, b, c, batches, rows, cols, length, {a_batch, a_row, a_step},
                                   {b_batch, b_row, b_step}, {c_batch, c_row, 1}, op, p);
}
