// fir_fixed: sixteen products and their sum in every cycle, in a third of the DSPs of fir.
#include "fir_fixed.hpp"

using namespace fir_fixed_config;

void fir_fixed(hls::stream<Beat>& samples, hls::stream<Beat>& filtered, const int coefficients[TAPS]) {
#pragma HLS INTERFACE axis port=samples
#pragma HLS INTERFACE axis port=filtered
#pragma HLS INTERFACE s_axilite port=coefficients bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    // As in fir: registers, since all of them are needed in each cycle.
    Number c[TAPS];
#pragma HLS ARRAY_PARTITION variable=c complete
    Number x[TAPS];  // x[k] came k beats ago
#pragma HLS ARRAY_PARTITION variable=x complete
copy_loop:
    for (int k = 0; k < TAPS; ++k) {
#pragma HLS PIPELINE II=1
        // range() is the bits as they are; an assignment of the number itself would mean whole numbers.
        c[k].range() = coefficients[k];
        x[k] = 0;
    }

    bool last = false;
packet_loop:
    while (!last) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=4096
        Beat beat = samples.read();
    shift_loop:
        for (int k = TAPS - 1; k > 0; --k) x[k] = x[k - 1];
        x[0].range() = beat.data;
        // A product of two Numbers has all of its 32 bits, and Sum has room for 16 of them: rounding
        // happens once, at the end, and not in every tap.
        Sum sum = 0;
    tap_loop:
        for (int k = 0; k < TAPS; ++k) sum += c[k] * x[k];
        const Number y = sum;
        beat.data = y.range();
        last = beat.last;
        filtered.write(beat);
    }
}
