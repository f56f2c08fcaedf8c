// spmv_f32: a row of A after the other.
#include "spmv_f32.hpp"

using namespace spmv_f32_config;

void spmv_f32(const int* crow, const int* col, const float* values, const float* x, float* y,
              int rows, int columns, int wide, int step_x, int step_y) {
#pragma HLS INTERFACE m_axi port=crow bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=col bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=values bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=x bundle=gmem3 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=y bundle=gmem4 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=crow bundle=control
#pragma HLS INTERFACE s_axilite port=col bundle=control
#pragma HLS INTERFACE s_axilite port=values bundle=control
#pragma HLS INTERFACE s_axilite port=x bundle=control
#pragma HLS INTERFACE s_axilite port=y bundle=control
#pragma HLS INTERFACE s_axilite port=rows bundle=control
#pragma HLS INTERFACE s_axilite port=columns bundle=control
#pragma HLS INTERFACE s_axilite port=wide bundle=control
#pragma HLS INTERFACE s_axilite port=step_x bundle=control
#pragma HLS INTERFACE s_axilite port=step_y bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    sparse::spmv<Table>(crow, col, values, x, y, rows, columns, wide, step_x, step_y);
}
