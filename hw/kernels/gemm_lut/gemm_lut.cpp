// gemm_lut: the body is gemm_core.hpp; here are the ports and the multiplier.
#include "gemm_lut.hpp"

#include "../gemm/gemm_core.hpp"

using namespace gemm_lut_config;

namespace {
// Two int8 products in LUTs: without BIND_OP Vitis would take a DSP48E1 for each.
struct FabricMultiplier {
    static void pair(int8_t x, int8_t weight_low, int8_t weight_high, int16_t& low, int16_t& high) {
#pragma HLS INLINE
        const int16_t product_low = weight_low * x;
        const int16_t product_high = weight_high * x;
#pragma HLS BIND_OP variable=product_low op=mul impl=fabric
#pragma HLS BIND_OP variable=product_high op=mul impl=fabric
        low = product_low;
        high = product_high;
    }
    static float times(float x, float y) {
#pragma HLS INLINE
        const float product = x * y;
#pragma HLS BIND_OP variable=product op=fmul impl=fabric
        return product;
    }
    static float plus(float x, float y) {
#pragma HLS INLINE
        const float sum = x + y;
#pragma HLS BIND_OP variable=sum op=fadd impl=fabric
        return sum;
    }
};
}  // namespace

void gemm_lut(hls::burst_maxi<int8_t> a, hls::burst_maxi<int8_t> b, hls::burst_maxi<int32_t> c, int m, int n, int k,
              int lda, int ldb, int ldc, hls::burst_maxi<int32_t> bias, hls::burst_maxi<float> scale, int mode) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=bias bundle=gmem2 offset=slave depth=COSIM_COLUMNS
#pragma HLS INTERFACE m_axi port=scale bundle=gmem2 offset=slave depth=COSIM_COLUMNS
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
    gemm_core::product<Shape, FabricMultiplier>(a, b, c, m, n, k, lda, ldb, ldc, bias, scale, mode);
}
