// vadd_2: c = a + b; reading, adding and writing overlap, an element a cycle.
#include "vadd_2.hpp"

using namespace vadd_2_config;

static void load(const float* memory, hls::stream<float>& words, int n) {
load_loop:
    for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
        words.write(memory[i]);
    }
}

static void add(hls::stream<float>& a, hls::stream<float>& b, hls::stream<float>& sum, int n) {
add_loop:
    for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
        sum.write(a.read() + b.read());
    }
}

static void store(hls::stream<float>& words, float* memory, int n) {
store_loop:
    for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
        memory[i] = words.read();
    }
}

void vadd_2(const float* a, const float* b, float* c, int n) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    hls::stream<float> a_words, b_words, c_words;
#pragma HLS STREAM variable=a_words depth=FIFO
#pragma HLS STREAM variable=b_words depth=FIFO
#pragma HLS STREAM variable=c_words depth=FIFO
#pragma HLS DATAFLOW
    load(a, a_words, n);
    load(b, b_words, n);
    add(a_words, b_words, c_words, n);
    store(c_words, c, n);
}
