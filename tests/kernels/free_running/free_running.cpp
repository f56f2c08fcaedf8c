// ap_ctrl_none: runs as soon as the bitstream is loaded; adds a register's value to a stream.
#include "ap_axi_sdata.h"
#include "hls_stream.h"

typedef ap_axiu<32, 0, 0, 0> beat_t;

void free_running(hls::stream<beat_t> &in, hls::stream<beat_t> &out, int bias) {
#pragma HLS INTERFACE axis port=in
#pragma HLS INTERFACE axis port=out
#pragma HLS INTERFACE s_axilite port=bias
#pragma HLS INTERFACE ap_ctrl_none port=return
    beat_t beat = in.read();
    beat.data += bias;
    out.write(beat);
}
