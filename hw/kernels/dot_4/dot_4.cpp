// dot_4: c = a . b, two elements side by side on ports of 64 bits, and 16 partial sums.
#include "dot_4.hpp"

using namespace dot_4_config;

static int words_of(int n) { return n > 0 ? (n - 1) / LANES + 1 : 0; }

static void load(const Word* memory, hls::stream<Word>& words, int n) {
load_loop:
    for (int i = 0; i < words_of(n); ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
        words.write(memory[i]);
    }
}

// A partial sum is met again after PARTIALS cycles, longer than the adder takes: that gives II=1.
static void multiply_add(hls::stream<Word>& a, hls::stream<Word>& b, float* c, int n) {
    float partial[PARTIALS][LANES];
// A memory a lane: in registers of their own, no sum would have a distance.
#pragma HLS ARRAY_PARTITION variable=partial type=complete dim=2
clear_loop:
    for (int p = 0; p < PARTIALS; ++p) {
#pragma HLS PIPELINE II=1
        for (int lane = 0; lane < LANES; ++lane) partial[p][lane] = 0.0f;
    }
sum_loop:
    for (int i = 0; i < words_of(n); ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
// A partial sum comes again after PARTIALS iterations.
#pragma HLS DEPENDENCE variable=partial type=inter direction=RAW distance=PARTIALS true
        const Word x = a.read();
        const Word y = b.read();
        for (int lane = 0; lane < LANES; ++lane) {
            // What lies behind the last element may be anything, also no number.
            const float product = i * LANES + lane < n ? x[lane] * y[lane] : 0.0f;
            partial[i % PARTIALS][lane] += product;
        }
    }
    float sum = 0.0f;
total_loop:
    for (int p = 0; p < PARTIALS; ++p) {
        for (int lane = 0; lane < LANES; ++lane) sum += partial[p][lane];
    }
    c[0] = sum;
}

void dot_4(const Word* a, const Word* b, float* c, int n) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem0 offset=slave depth=1 max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    hls::stream<Word> a_words, b_words;
#pragma HLS STREAM variable=a_words depth=FIFO
#pragma HLS STREAM variable=b_words depth=FIFO
#pragma HLS DATAFLOW
    load(a, a_words, n);
    load(b, b_words, n);
    multiply_add(a_words, b_words, c, n);
}
