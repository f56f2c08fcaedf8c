// activation_f32: ReLU and its gradient, load / compute / store overlapped tile by tile.
#include "activation_f32.hpp"

using namespace activation_f32_config;

// Elements in tile t.
static int count_of(int t, int n) { return n - t * TILE < TILE ? n - t * TILE : TILE; }

static void load(const float* memory, float tile[TILE], int t, int n) {
    const int count = count_of(t, n);
load_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        tile[i] = memory[t * TILE + i];
    }
}

static void load_gradient(const float* memory, float tile[TILE], int t, int n, int op) {
    if (op == BACKWARD) load(memory, tile, t, n);
}

static void choose(const float gradient[TILE], const float x[TILE], float y[TILE], int t, int n, int op, float threshold) {
    const int count = count_of(t, n);
choose_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        const bool zero = op == RELU ? x[i] < 0.0f : x[i] <= threshold;
        y[i] = zero ? 0.0f : (op == RELU ? x[i] : gradient[i]);
    }
}

static void store(const float tile[TILE], float* memory, int t, int n) {
    const int count = count_of(t, n);
store_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        memory[t * TILE + i] = tile[i];
    }
}

// Dataflow over the loop: a tile is loaded while the one before is computed and a third is stored.
static void walk(const float* gradient, const float* x, float* y, int op, float threshold, int n, int tiles) {
tile_loop:
    for (int t = 0; t < tiles; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
#pragma HLS DATAFLOW
        float gradient_tile[TILE], x_tile[TILE], y_tile[TILE];
        load_gradient(gradient, gradient_tile, t, n, op);
        load(x, x_tile, t, n);
        choose(gradient_tile, x_tile, y_tile, t, n, op, threshold);
        store(y_tile, y, t, n);
    }
}

void activation_f32(const float* gradient, const float* x, float* y, int op, float threshold, int n) {
#pragma HLS INTERFACE m_axi port=gradient bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=x bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=y bundle=gmem1 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=gradient bundle=control
#pragma HLS INTERFACE s_axilite port=x bundle=control
#pragma HLS INTERFACE s_axilite port=y bundle=control
#pragma HLS INTERFACE s_axilite port=op bundle=control
#pragma HLS INTERFACE s_axilite port=threshold bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    walk(gradient, x, y, op, threshold, n, n > 0 ? (n - 1) / TILE + 1 : 0);
}
