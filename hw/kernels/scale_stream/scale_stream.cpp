// scale_stream: y = gain * x + offset, a beat a cycle.
#include "scale_stream.hpp"

using namespace scale_stream_config;

// A float travels in TDATA as its bits.
union FloatBits {
    unsigned int bits;
    float value;
};

int scale_stream(hls::stream<Beat>& samples, hls::stream<Beat>& scaled, float gain, float offset) {
#pragma HLS INTERFACE axis port=samples
#pragma HLS INTERFACE axis port=scaled
#pragma HLS INTERFACE s_axilite port=gain bundle=control
#pragma HLS INTERFACE s_axilite port=offset bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    int beats = 0;
    bool last = false;
packet_loop:
    while (!last) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        Beat beat = samples.read();
        FloatBits sample;
        sample.bits = beat.data.to_uint();
        sample.value = gain * sample.value + offset;
        beat.data = sample.bits;
        last = beat.last;
        scaled.write(beat);
        ++beats;
    }
    return beats;
}
