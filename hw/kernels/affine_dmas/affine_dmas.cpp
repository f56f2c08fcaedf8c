// affine_dmas: a beat of both streams a cycle; whichever is late holds the other up.
#include "affine_dmas.hpp"

using affine::Beat;

void affine_dmas(hls::stream<Beat>& samples, hls::stream<Beat>& gains, hls::stream<Beat>& results, float offset) {
#pragma HLS INTERFACE axis port=samples
#pragma HLS INTERFACE axis port=gains
#pragma HLS INTERFACE axis port=results
#pragma HLS INTERFACE s_axilite port=offset bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    bool last = false;
packet_loop:
    while (!last) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        Beat beat = samples.read();
        const float gain = affine::value_of(gains.read());
        beat.data = affine::bits_of(affine::element(affine::value_of(beat), gain, offset));
        last = beat.last;
        results.write(beat);
    }
}
