// affine_dma: a beat a cycle, until TLAST.
#include "affine_dma.hpp"

using affine::Beat;

void affine_dma(hls::stream<Beat>& samples, hls::stream<Beat>& results, float gain, float offset) {
#pragma HLS INTERFACE axis port=samples
#pragma HLS INTERFACE axis port=results
#pragma HLS INTERFACE s_axilite port=gain bundle=control
#pragma HLS INTERFACE s_axilite port=offset bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    bool last = false;
packet_loop:
    while (!last) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        Beat beat = samples.read();
        beat.data = affine::bits_of(affine::element(affine::value_of(beat), gain, offset));
        last = beat.last;
        results.write(beat);
    }
}
