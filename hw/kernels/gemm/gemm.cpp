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
};
}  // namespace

void gemm(const int8_t* a, const int8_t* b, int32_t* c, int m, int n, int k, int lda, int ldb, int ldc) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=m bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=k bundle=control
#pragma HLS INTERFACE s_axilite port=lda bundle=control
#pragma HLS INTERFACE s_axilite port=ldb bundle=control
#pragma HLS INTERFACE s_axilite port=ldc bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    gemm_core::product<Shape, PackedMultiplier>(a, b, c, m, n, k, lda, ldb, ldc);
}
