// gemm: the body is gemm_core.hpp; here are the ports and the multiplier.
#include "gemm.hpp"

#include "gemm_core.hpp"

using namespace gemm_config;

namespace {
// Two int8 products in one DSP48E1 (25 x 18 bit): the weights share the 25-bit operand, 16 bits
// apart. The low product fits 16 bits (|-128 * -128| = 2^14), so taking it off the sum leaves the
// high one exactly.
struct PackedMultiplier {
    static void pair(int8_t x, int8_t weight_low, int8_t weight_high, int16_t& low, int16_t& high) {
#pragma HLS INLINE
        const int32_t packed = weight_high * 65536 + weight_low;
        const int32_t products = packed * x;
#pragma HLS BIND_OP variable=products op=mul impl=dsp
        low = static_cast<int16_t>(products);
        high = static_cast<int16_t>((products - low) >> 16);
    }
    // Two cores with a rounding each; -ffp-contract=off keeps it so on a PC that could fuse them.
    static float times(float x, float y) { return x * y; }
    static float plus(float x, float y) { return x + y; }
};
}  // namespace

void gemm(hls::burst_maxi<int8_t> a, hls::burst_maxi<int8_t> b, hls::burst_maxi<int32_t> c, int m, int n, int k,
          int lda, int ldb, int ldc, hls::burst_maxi<int32_t> bias, hls::burst_maxi<float> scale, int mode) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_widen_bitwidth=PORT_BITS max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_widen_bitwidth=PORT_BITS max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem2 offset=slave depth=COSIM_DEPTH max_widen_bitwidth=PORT_BITS max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
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
    gemm_core::product<Shape, PackedMultiplier>(a, b, c, m, n, k, lda, ldb, ldc, bias, scale, mode);
}
