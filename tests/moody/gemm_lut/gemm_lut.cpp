// gemm_lut by its registers; see moody.hpp.
#include "../moody.hpp"

void gemm_lut(const int8_t *a, const int8_t *b, int32_t *c, int m, int n, int k, int lda, int ldb, int ldc,
        const int32_t *bias, const float *scale, int mode) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave
#pragma HLS INTERFACE m_axi port=c bundle=gmem2 offset=slave
#pragma HLS INTERFACE m_axi port=bias bundle=gmem2 offset=slave
#pragma HLS INTERFACE m_axi port=scale bundle=gmem2 offset=slave
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=m bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=k bundle=control
#pragma HLS INTERFACE s_axilite port=lda bundle=control
#pragma HLS INTERFACE s_axilite port=ldb bundle=control
#pragma HLS INTERFACE s_axilite port=ldc bundle=control
#pragma HLS INTERFACE s_axilite port=bias bundle=control
#pragma HLS INTERFACE s_axilite port=scale bundle=control
#pragma HLS INTERFACE s_axilite port=mode bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    moody::product(a, b, c, m, n, k, lda, ldb, ldc, bias, scale, mode, 10);
}
