// vadd: c = a + b, load / compute / store overlapped tile by tile.
#include "vadd.hpp"

using namespace vadd_config;

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

static void add(const float a[TILE], const float b[TILE], float sum[TILE], int t, int n) {
    const int count = count_of(t, n);
add_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        sum[i] = a[i] + b[i];
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

// Dataflow over the loop: a tile is loaded while the one before is added and a third is stored.
static void add_tiles(const float* a, const float* b, float* c, int n, int tiles) {
tile_loop:
    for (int t = 0; t < tiles; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
#pragma HLS DATAFLOW
        float a_tile[TILE];
        float b_tile[TILE];
        float c_tile[TILE];
        load(a, a_tile, t, n);
        load(b, b_tile, t, n);
        add(a_tile, b_tile, c_tile, t, n);
        store(c_tile, c, t, n);
    }
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

    add_tiles(a, b, c, n, n > 0 ? (n - 1) / TILE + 1 : 0);
}
