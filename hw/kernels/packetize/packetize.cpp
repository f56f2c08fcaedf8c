// packetize: n beats in, n beats out, TLAST with every packet-th, a beat a cycle.
#include "packetize.hpp"

using namespace packetize_config;

void packetize(hls::stream<Beat>& samples, hls::stream<Beat>& packets, int n, int packet) {
#pragma HLS INTERFACE axis port=samples
#pragma HLS INTERFACE axis port=packets
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=packet bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    int left = packet;  // beats until the packet is complete
beat_loop:
    for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        Beat beat = samples.read();
        beat.last = left == 1;
        left = left > 1 ? left - 1 : packet;
        packets.write(beat);
    }
}
