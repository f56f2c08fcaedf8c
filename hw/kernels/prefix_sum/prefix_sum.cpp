// prefix_sum: an element a cycle.
//
// sums[i] = sums[i - 1] + values[i] is how one would write it down. It reads from DDR what it has
// just written there, so each element would wait for the way out and back, some hundred cycles.
// The sum so far in a register is ready after one addition: one cycle.
#include "prefix_sum.hpp"

using namespace prefix_sum_config;

void prefix_sum(const int* values, int* sums, int n) {
#pragma HLS INTERFACE m_axi port=values bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST
#pragma HLS INTERFACE m_axi port=sums bundle=gmem1 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST
#pragma HLS INTERFACE s_axilite port=values bundle=control
#pragma HLS INTERFACE s_axilite port=sums bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    unsigned int sum = 0;  // unsigned: C++ lets it wrap round
element_loop:
    for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
        // A float would take longer: its adder has several stages, and the next sum needs the result.
        sum += static_cast<unsigned int>(values[i]);
        sums[i] = static_cast<int>(sum);
    }
}
