// Adds one to every beat of a packet; in its RTL `mode` chooses how it asks for a beat, and
// `cycles` how long it computes.
#include "ap_axi_sdata.h"
#include "hls_stream.h"

typedef ap_axiu<32, 0, 0, 0> beat_t;

void hesitant(hls::stream<beat_t> &samples, hls::stream<beat_t> &results, unsigned mode,
              unsigned cycles) {
#pragma HLS INTERFACE axis port=samples
#pragma HLS INTERFACE axis port=results
#pragma HLS INTERFACE s_axilite port=mode bundle=control
#pragma HLS INTERFACE s_axilite port=cycles bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
    bool last = false;
    while (!last) {
        beat_t beat = samples.read();
        beat.data += 1;
        last = beat.last;
        results.write(beat);
    }
}
