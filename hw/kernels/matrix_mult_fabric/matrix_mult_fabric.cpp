// matrix_mult_fabric: the body is matrix_mult_core.hpp; here are the port and the multiplier.
#include "matrix_mult_fabric.hpp"

#include "../matrix_mult/matrix_mult_core.hpp"

using namespace matrix_mult_fabric_config;

namespace {
// Two int8 products in LUTs: without BIND_OP Vitis would take a DSP48E1 for each.
struct FabricMultiplier {
    static void pair(int8_t x, int8_t y_low, int8_t y_high, int16_t& low, int16_t& high) {
#pragma HLS INLINE
        const int16_t product_low = y_low * x;
        const int16_t product_high = y_high * x;
#pragma HLS BIND_OP variable=product_low op=mul impl=fabric
#pragma HLS BIND_OP variable=product_high op=mul impl=fabric
        low = product_low;
        high = product_high;
    }
};
}  // namespace

void matrix_mult_fabric(const int32_t* in1, const int32_t* in2, int32_t* out) {
#pragma HLS INTERFACE m_axi port=in1 bundle=gmem offset=slave depth=ELEMENTS max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=in2 bundle=gmem offset=slave depth=ELEMENTS max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=out bundle=gmem offset=slave depth=ELEMENTS max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=in1 bundle=control
#pragma HLS INTERFACE s_axilite port=in2 bundle=control
#pragma HLS INTERFACE s_axilite port=out bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    matrix_mult_core::product<WIDTH, FabricMultiplier>(in1, in2, out);
}
