// spmm_f32: a row of A after the other, n columns of B at a time.
#include "spmm_f32.hpp"

using namespace spmm_f32_config;

void spmm_f32(const int* crow, const int* col, const float* values, const float* b, float* out,
              int rows, int n, int wide, int row_b, int step_b, int row_out) {
#pragma HLS INTERFACE m_axi port=crow bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=col bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=values bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem3 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=out bundle=gmem4 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=crow bundle=control
#pragma HLS INTERFACE s_axilite port=col bundle=control
#pragma HLS INTERFACE s_axilite port=values bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=out bundle=control
#pragma HLS INTERFACE s_axilite port=rows bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=wide bundle=control
#pragma HLS INTERFACE s_axilite port=row_b bundle=control
#pragma HLS INTERFACE s_axilite port=step_b bundle=control
#pragma HLS INTERFACE s_axilite port=row_out bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    sparse::spmm<Table>(crow, col, values, b, out, rows, n, wide, row_b, step_b, row_out);
}
