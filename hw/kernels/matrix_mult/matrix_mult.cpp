// matrix_mult: the body is matrix_mult_core.hpp; here are the port and the multiplier.
#include "matrix_mult.hpp"

#include "matrix_mult_core.hpp"

using namespace matrix_mult_config;

namespace {
// Two int8 products in one DSP48E1 (25 x 18 bit): the values of in2 share the 25-bit operand, 16
// bits apart. The low product fits 16 bits, so taking it off the sum leaves the high one exactly.
struct PackedMultiplier {
    static void pair(int8_t x, int8_t y_low, int8_t y_high, int16_t& low, int16_t& high) {
#pragma HLS INLINE
        const int32_t packed = y_high * 65536 + y_low;
        const int32_t products = packed * x;
#pragma HLS BIND_OP variable=products op=mul impl=dsp
        low = static_cast<int16_t>(products);
        high = static_cast<int16_t>((products - low) >> 16);
    }
};
}  // namespace

void matrix_mult(const int32_t* in1, const int32_t* in2, int32_t* out) {
#pragma HLS INTERFACE m_axi port=in1 bundle=gmem offset=slave depth=ELEMENTS max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=in2 bundle=gmem offset=slave depth=ELEMENTS max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=out bundle=gmem offset=slave depth=ELEMENTS max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=in1 bundle=control
#pragma HLS INTERFACE s_axilite port=in2 bundle=control
#pragma HLS INTERFACE s_axilite port=out bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    matrix_mult_core::product<WIDTH, PackedMultiplier>(in1, in2, out);
}
