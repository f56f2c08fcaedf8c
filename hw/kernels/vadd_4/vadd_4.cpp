// vadd_4: c = a + b, two elements side by side on ports of 64 bits.
#include "vadd_4.hpp"

using namespace vadd_4_config;

static int words_of(int n) { return n > 0 ? (n - 1) / LANES + 1 : 0; }

static void load(const Word* memory, hls::stream<Word>& words, int n) {
load_loop:
    for (int i = 0; i < words_of(n); ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
        words.write(memory[i]);
    }
}

static void add(hls::stream<Word>& a, hls::stream<Word>& b, hls::stream<Word>& sum, int n) {
add_loop:
    for (int i = 0; i < words_of(n); ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
        sum.write(a.read() + b.read());
    }
}

static void store(hls::stream<Word>& words, Word* memory, int n) {
store_loop:
    for (int i = 0; i < words_of(n); ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
        memory[i] = words.read();
    }
}

void vadd_4(const Word* a, const Word* b, Word* c, int n) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem0 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    hls::stream<Word> a_words, b_words, c_words;
#pragma HLS STREAM variable=a_words depth=FIFO
#pragma HLS STREAM variable=b_words depth=FIFO
#pragma HLS STREAM variable=c_words depth=FIFO
#pragma HLS DATAFLOW
    load(a, a_words, n);
    load(b, b_words, n);
    add(a_words, b_words, c_words, n);
    store(c_words, c, n);
}
