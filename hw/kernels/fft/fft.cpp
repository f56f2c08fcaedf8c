// fft: radix 2, decimation in time, in place: load in bit-reversed order, eight stages, store.
//
// Scaling: a butterfly's results, a + w * b and a - w * b, may be twice as long as a and b. Each stage
// divides them by two, so no length ever grows beyond the longest of the input, sqrt(2), and nothing
// overflows. After eight stages the result is the transform divided by 256.
//
// Error, in steps u = 2^-30 of Number: w is cut off, which turns b (sqrt(2) long) wrong by 2 u at most;
// cutting off the two parts of w * b adds sqrt(2) u. A stage halves that, and cuts off once more:
// 1.7 u + 1.4 u. Errors of the stages before neither grow nor shrink: 25 u after eight, below 2^-25.
#include "fft.hpp"

using namespace fft_config;

// cos(2 pi k / N) of the first quarter of the circle; the other quarters follow by symmetry.
static const Number QUARTER[N / 4 + 1] = {
    1, 0.9996988186962, 0.9987954562052, 0.9972904566787, 0.9951847266722, 0.9924795345987,
    0.9891765099648, 0.9852776423889, 0.9807852804032, 0.9757021300385, 0.9700312531945, 0.9637760657954,
    0.9569403357322, 0.9495281805930, 0.9415440651830, 0.9329927988347, 0.9238795325113, 0.9142097557035,
    0.9039892931234, 0.8932243011955, 0.8819212643484, 0.8700869911087, 0.8577286100003, 0.8448535652497,
    0.8314696123025, 0.8175848131516, 0.8032075314806, 0.7883464276266, 0.7730104533627, 0.7572088465065,
    0.7409511253550, 0.7242470829515, 0.7071067811865, 0.6895405447371, 0.6715589548470, 0.6531728429538,
    0.6343932841636, 0.6152315905806, 0.5956993044924, 0.5758081914178, 0.5555702330196, 0.5349976198871,
    0.5141027441932, 0.4928981922298, 0.4713967368260, 0.4496113296546, 0.4275550934303, 0.4052413140050,
    0.3826834323651, 0.3598950365350, 0.3368898533922, 0.3136817403989, 0.2902846772545, 0.2667127574749,
    0.2429801799033, 0.2191012401569, 0.1950903220161, 0.1709618887603, 0.1467304744554, 0.1224106751992,
    0.0980171403296, 0.0735645635997, 0.0490676743274, 0.0245412285229, 0,
};

static Number cosine(int k) {  // 0 <= k < N / 2
    return k <= N / 4 ? QUARTER[k] : Number(-QUARTER[N / 2 - k]);
}

static Number sine(int k) { return k <= N / 4 ? QUARTER[N / 4 - k] : QUARTER[k - N / 4]; }

// The LOG_N bits of i in reverse order: what the halving into even and odd indices leads to.
static int reversed(int i) {
    int result = 0;
bit_loop:
    for (int bit = 0; bit < LOG_N; ++bit) result = result << 1 | (i >> bit & 1);
    return result;
}

// Reads in order, so that the reads of memory become bursts; the BRAM takes any order.
static void load(const Number* input, Number re[N], Number im[N], int frame) {
load_loop:
    for (int i = 0; i < 2 * N; ++i) {
#pragma HLS PIPELINE II=1
        const Number value = input[frame * 2 * N + i];
        if (i % 2 == 0) re[reversed(i / 2)] = value;
        else im[reversed(i / 2)] = value;
    }
}

static void transform(Number re[N], Number im[N]) {
stage_loop:
    for (int stage = 0; stage < LOG_N; ++stage) {
    butterfly_loop:
        for (int i = 0; i < N / 2; ++i) {
// II=2: a butterfly reads two elements of each array and writes two, and a BRAM has two ports.
// Why the claims hold: within a stage every element belongs to one butterfly, so no iteration reads
// what another one writes. From stage to stage one does: the loops stay two, and the pipeline is
// empty before the next stage begins.
#pragma HLS LOOP_FLATTEN off
#pragma HLS PIPELINE II=2
#pragma HLS DEPENDENCE variable=re type=inter dependent=false
#pragma HLS DEPENDENCE variable=im type=inter dependent=false
            const int half = 1 << stage;    // the pairs of this stage are so far apart
            const int k = i & (half - 1);   // place within the group
            const int a = 2 * (i - k) + k, b = a + half;
            const int turn = k << (LOG_N - 1 - stage);  // w = exp(-2 pi j turn / N)
            const Number w_re = cosine(turn), w_im = sine(turn);  // w_im with its sign changed
            const Number t_re = w_re * re[b] + w_im * im[b];
            const Number t_im = w_re * im[b] - w_im * re[b];
            const Number a_re = re[a], a_im = im[a];
            re[a] = (a_re + t_re) >> 1;
            im[a] = (a_im + t_im) >> 1;
            re[b] = (a_re - t_re) >> 1;
            im[b] = (a_im - t_im) >> 1;
        }
    }
}

static void store(const Number re[N], const Number im[N], Number* output, int frame) {
store_loop:
    for (int i = 0; i < 2 * N; ++i) {
#pragma HLS PIPELINE II=1
        output[frame * 2 * N + i] = i % 2 == 0 ? re[i / 2] : im[i / 2];
    }
}

void fft(const Number* input, Number* output, int frames) {
#pragma HLS INTERFACE m_axi port=input bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST
#pragma HLS INTERFACE m_axi port=output bundle=gmem1 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST
#pragma HLS INTERFACE s_axilite port=input bundle=control
#pragma HLS INTERFACE s_axilite port=output bundle=control
#pragma HLS INTERFACE s_axilite port=frames bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

frame_loop:
    for (int frame = 0; frame < frames; ++frame) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=MAX_FRAMES
        Number re[N], im[N];
        load(input, re, im, frame);
        transform(re, im);
        store(re, im, output, frame);
    }
}
