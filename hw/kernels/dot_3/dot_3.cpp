// dot_3: c = a . b on two ports instead of three, so that two units fit the four of the PS.
#include "dot_3.hpp"

using namespace dot_3_config;

static void load(const float* memory, hls::stream<float>& words, int n) {
load_loop:
    for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
        words.write(memory[i]);
    }
}

// Each addition waits for the one before: the adder takes 5 cycles, so II=1 is out of reach.
static void multiply_add(hls::stream<float>& a, hls::stream<float>& b, float* c, int n) {
    float sum = 0.0f;
sum_loop:
    for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE II=5
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
        sum += a.read() * b.read();
    }
    c[0] = sum;
}

void dot_3(const float* a, const float* b, float* c, int n) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem0 offset=slave depth=1 max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    hls::stream<float> a_words, b_words;
#pragma HLS STREAM variable=a_words depth=FIFO
#pragma HLS STREAM variable=b_words depth=FIFO
#pragma HLS DATAFLOW
    load(a, a_words, n);
    load(b, b_words, n);
    multiply_add(a_words, b_words, c, n);
}
