// affine_lite: the host writes x word by word, and reads y so.
#include "affine_lite.hpp"

using namespace affine_lite_config;

void affine_lite(const float x[CAPACITY], float y[CAPACITY], float gain, float offset, int n) {
#pragma HLS INTERFACE s_axilite port=x bundle=control
#pragma HLS INTERFACE s_axilite port=y bundle=control
#pragma HLS INTERFACE s_axilite port=gain bundle=control
#pragma HLS INTERFACE s_axilite port=offset bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    const int count = n < CAPACITY ? n : CAPACITY;
element_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=CAPACITY
        y[i] = affine::element(x[i], gain, offset);
    }
}
