// chain: scale, threshold, accumulate, joined by FIFOs.
//
// In C++ the three functions run one after the other. DATAFLOW makes three circuits of them that run
// at once: while `accumulate` adds sample i, `threshold` looks at the next and `scale` multiplies the
// one after that. So n samples take n cycles, not 3 * n, and no array holds what lies between.
//
// What DATAFLOW asks for: only calls in the region, each variable written by one of them and read by
// one other, and no way back. A FIFO whose reader waits for what its writer has not sent yet, while
// the writer waits for room in another FIFO, would be a deadlock; in a chain there is none.
#include "chain.hpp"

using namespace chain_config;

static void scale(hls::stream<Beat>& samples, hls::stream<int>& scaled, int gain, int n) {
scale_loop:
    for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        // unsigned: C++ lets a product wrap round, as the hardware does
        const unsigned int product = samples.read().data.to_uint() * static_cast<unsigned int>(gain);
        scaled.write(static_cast<int>(product));
    }
}

static void threshold(hls::stream<int>& scaled, hls::stream<int>& kept, int limit, int n) {
threshold_loop:
    for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        const int value = scaled.read();
        // A 0 goes on where nothing is to be added: a process that sent nothing would leave the next
        // one, which counts to n as well, waiting for ever.
        kept.write(value < limit ? 0 : value);
    }
}

static void accumulate(hls::stream<int>& kept, hls::stream<Beat>& sums, int n) {
    unsigned int sum = 0;
accumulate_loop:
    for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        sum += static_cast<unsigned int>(kept.read());
        Beat beat;
        beat.data = sum;
        beat.keep = -1;  // all bytes count
        beat.strb = -1;
        beat.last = i == n - 1;
        sums.write(beat);
    }
}

void chain(hls::stream<Beat>& samples, hls::stream<Beat>& sums, int gain, int limit, int n) {
#pragma HLS INTERFACE axis port=samples
#pragma HLS INTERFACE axis port=sums
#pragma HLS INTERFACE s_axilite port=gain bundle=control
#pragma HLS INTERFACE s_axilite port=limit bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
#pragma HLS DATAFLOW

    hls::stream<int> scaled("scaled");
    hls::stream<int> kept("kept");
#pragma HLS STREAM variable=scaled depth=DEPTH
#pragma HLS STREAM variable=kept depth=DEPTH
    scale(samples, scaled, gain, n);
    threshold(scaled, kept, limit, n);
    accumulate(kept, sums, n);
}
