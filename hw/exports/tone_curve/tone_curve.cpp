// tone_curve: a beat a cycle, four pixels a beat.
#include "tone_curve.hpp"

using tone::Beat;

void tone_curve(hls::stream<Beat>& pixels, hls::stream<Beat>& toned, tone::Strength strength) {
#pragma HLS INTERFACE axis port=pixels
#pragma HLS INTERFACE axis port=toned
#pragma HLS INTERFACE s_axilite port=strength bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control

beat_loop:
    for (int i = 0; i < tone::BEATS; i++) {
#pragma HLS PIPELINE II=1
        Beat beat = pixels.read();
        ap_uint<tone::LANES * tone::PIXEL_BITS> out = 0;
    lane_loop:
        for (int lane = 0; lane < tone::LANES; lane++) {
#pragma HLS UNROLL
            const int low = lane * tone::PIXEL_BITS, high = low + tone::PIXEL_BITS - 1;
            const int x = beat.data.range(high, low).to_int();
            const int more = (tone::CURVE[x] - x) * strength.to_int();
            out.range(high, low) = x + (more >> tone::FULL_BITS);
        }
        beat.data = out;
        toned.write(beat);
    }
}
