// ap_ctrl_none: adds one to every beat, some time after it came.
#include "ap_axi_sdata.h"
#include "hls_stream.h"

typedef ap_axiu<32, 0, 0, 0> beat_t;

void increment(hls::stream<beat_t> &samples, hls::stream<beat_t> &results) {
#pragma HLS INTERFACE axis port=samples
#pragma HLS INTERFACE axis port=results
#pragma HLS INTERFACE ap_ctrl_none port=return
    beat_t beat = samples.read();
    beat.data += 1;
    results.write(beat);
}
