// histogram: a byte a cycle, although each count depends on the one before.
//
// counts[v] = counts[v] + 1 for each byte v takes three cycles: read, add, write. Where two equal
// bytes follow each other, the second would read before the first has written, so HLS lets a byte in
// only every second or third cycle. The remedy: keep the counts of the latest two values in registers.
//
// One is not enough at 100 MHz: its count would have to come out of the BRAM, grow by 1 and be back in
// the BRAM within a cycle, for the byte after the next. Of two, the older one has been in its register
// for a cycle when it is written.
#include "histogram.hpp"

using namespace histogram_config;

static void clear(int bins[BINS]) {
clear_loop:
    for (int v = 0; v < BINS; ++v) {
#pragma HLS PIPELINE II=1
        bins[v] = 0;
    }
}

static void count(const unsigned char* values, int bins[BINS], int n) {
    int last = 0, before = 1;    // the latest two values ...
    int total = 0, waiting = 0;  // ... and their counts, newer than those in bins
value_loop:
    for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
// Why this holds: an iteration that writes and reads does so at two addresses, bins[before] and
// bins[v] with v != before. So its read need not wait for its own write.
//
// What it does not say: of two iterations in a row, the second may well read what the first has
// written (values a b c a). HLS knows, and has the write done in the cycle before that read: `waiting`
// is a register by then. Hence II=1.
#pragma HLS DEPENDENCE variable=bins type=intra direction=RAW dependent=false
        const int v = values[i];
        if (v == last) {
            total = total + 1;
        } else {
            int count = waiting;
            if (v != before) {
                bins[before] = waiting;
                count = bins[v];
            }
            before = last;
            waiting = total;
            last = v;
            total = count + 1;
        }
    }
    bins[before] = waiting;
    bins[last] = total;
}

static void store(const int bins[BINS], int* counts) {
store_loop:
    for (int v = 0; v < BINS; ++v) {
#pragma HLS PIPELINE II=1
        counts[v] = bins[v];
    }
}

void histogram(const unsigned char* values, int* counts, int n) {
#pragma HLS INTERFACE m_axi port=values bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST
#pragma HLS INTERFACE m_axi port=counts bundle=gmem1 offset=slave depth=BINS max_write_burst_length=BURST
#pragma HLS INTERFACE s_axilite port=values bundle=control
#pragma HLS INTERFACE s_axilite port=counts bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    int bins[BINS];
    clear(bins);
    count(values, bins, n);
    store(bins, counts);
}
