// fir: sixteen products and their sum in every cycle.
#include "fir.hpp"

using namespace fir_config;

void fir(hls::stream<Beat>& samples, hls::stream<Beat>& filtered, const int coefficients[TAPS]) {
#pragma HLS INTERFACE axis port=samples
#pragma HLS INTERFACE axis port=filtered
#pragma HLS INTERFACE s_axilite port=coefficients bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    // The host writes the coefficients into a memory, which gives one of them a cycle. The sum needs
    // all of them in each cycle, so they are copied into registers first: "complete" makes them so.
    // unsigned: C++ lets its sums wrap round, as the hardware does; those of int may not.
    unsigned int c[TAPS];
#pragma HLS ARRAY_PARTITION variable=c complete
    unsigned int x[TAPS];  // x[k] came k beats ago
#pragma HLS ARRAY_PARTITION variable=x complete
copy_loop:
    for (int k = 0; k < TAPS; ++k) {
#pragma HLS PIPELINE II=1
        c[k] = coefficients[k];
        x[k] = 0;
    }

    bool last = false;
packet_loop:
    while (!last) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        Beat beat = samples.read();
        // PIPELINE unrolls the two loops inside: the whole line of registers moves on in a cycle ...
    shift_loop:
        for (int k = TAPS - 1; k > 0; --k) x[k] = x[k - 1];
        x[0] = beat.data.to_uint();
        // ... and the sum becomes a tree of adders, pipelined, since a sample needs no earlier result.
        unsigned int sum = 0;
    tap_loop:
        for (int k = 0; k < TAPS; ++k) sum += c[k] * x[k];
        beat.data = sum;
        last = beat.last;
        filtered.write(beat);
    }
}
