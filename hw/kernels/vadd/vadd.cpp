// vadd: c = a + b, load / compute / store overlapped tile by tile.
#include "vadd.hpp"

using namespace vadd_config;

static void load(const float* memory, float tile[TILE], int first, int count) {
load_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        tile[i] = memory[first + i];
    }
}

static void add(const float a[TILE], const float b[TILE], float sum[TILE], int count) {
add_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        sum[i] = a[i] + b[i];
    }
}

static void store(const float tile[TILE], float* memory, int first, int count) {
store_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        memory[first + i] = tile[i];
    }
}

static void add_tile(const float* a, const float* b, float* c, int first, int count) {
#pragma HLS DATAFLOW
    float a_tile[TILE];
    float b_tile[TILE];
    float c_tile[TILE];
    load(a, a_tile, first, count);
    load(b, b_tile, first, count);
    add(a_tile, b_tile, c_tile, count);
    store(c_tile, c, first, count);
}

void vadd(const float* a, const float* b, float* c, int n) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=c bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    const int tiles = n > 0 ? (n - 1) / TILE + 1 : 0;
tile_loop:
    for (int t = 0; t < tiles; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
        const int first = t * TILE;
        const int count = n - first < TILE ? n - first : TILE;
        add_tile(a, b, c, first, count);
    }
}
