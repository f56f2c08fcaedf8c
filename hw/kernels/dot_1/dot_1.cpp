// dot_1: c = a . b through buffers; a tile is read, then multiplied and added, one step after the other.
#include "dot_1.hpp"

using namespace dot_1_config;

static void load(const float* memory, float tile[TILE], int count) {
load_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        tile[i] = memory[i];
    }
}

static float multiply_add(const float a[TILE], const float b[TILE], float sum, int count) {
sum_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE off
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        sum += a[i] * b[i];
    }
    return sum;
}

void dot_1(const float* a, const float* b, float* c, int n) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem0 offset=slave depth=1 max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    float a_tile[TILE];
    float b_tile[TILE];
    float sum = 0.0f;
tile_loop:
    for (int t = 0; t < n; t += TILE) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
        const int count = n - t < TILE ? n - t : TILE;
        load(a + t, a_tile, count);
        load(b + t, b_tile, count);
        sum = multiply_add(a_tile, b_tile, sum, count);
    }
    c[0] = sum;
}
