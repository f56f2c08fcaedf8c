// pool2d_f32: the ports; the work is in ../../include/pool2d_forward.hpp and pool2d_backward.hpp.
#include "pool2d_f32.hpp"

#include "../../include/pool2d_backward.hpp"
#include "../../include/pool2d_forward.hpp"

using namespace pool2d_f32_config;
using namespace pool2d;

// Dataflow over the loop: a tile is loaded while the one before is pooled and a third is stored. Each
// process finds its tile from the number: none of them waits for another's.
static void forward(const float* source, float* result, int64_t* indices, Job job, Strides from, Strides to,
                    Strides index_strides, int tiles) {
tile_loop:
    for (int t = 0; t < tiles; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
#pragma HLS DATAFLOW
        float band[BAND], value[TILE];
        int index[TILE];
        load_band(source, band, t, job, from);
        pool_band(band, value, index, t, job);
        store_tile(value, index, result, indices, t, job, to, index_strides);
    }
}

static void backward(const float* source, float* result, const int64_t* indices, const Job& job, Strides from,
                     Strides to, Strides index_strides) {
image_loop:
    for (int image = 0; image < job.batch; ++image) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
    channel_loop:
        for (int channel = 0; channel < job.channels; ++channel) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
            scatter_plane(source, result, indices, image, channel, job, from, to, index_strides);
        }
    }
}

void pool2d_f32(const float* source, float* result, int64_t* indices, int op, int batch, int channels,
                int rows, int cols, int out_rows, int out_cols, int kernel_rows, int kernel_cols,
                int stride_rows, int stride_cols, int pad_rows, int pad_cols, int step_rows, int step_cols,
                int divisor, int tile_rows, int tile_cols,
                int source_image, int source_channel, int source_row, int source_col,
                int result_image, int result_channel, int result_row, int result_col,
                int index_image, int index_channel, int index_row, int index_col) {
#pragma HLS INTERFACE m_axi port=source bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE m_axi port=result bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE m_axi port=indices bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE s_axilite port=source bundle=control
#pragma HLS INTERFACE s_axilite port=result bundle=control
#pragma HLS INTERFACE s_axilite port=indices bundle=control
#pragma HLS INTERFACE s_axilite port=op bundle=control
#pragma HLS INTERFACE s_axilite port=batch bundle=control
#pragma HLS INTERFACE s_axilite port=channels bundle=control
#pragma HLS INTERFACE s_axilite port=rows bundle=control
#pragma HLS INTERFACE s_axilite port=cols bundle=control
#pragma HLS INTERFACE s_axilite port=out_rows bundle=control
#pragma HLS INTERFACE s_axilite port=out_cols bundle=control
#pragma HLS INTERFACE s_axilite port=kernel_rows bundle=control
#pragma HLS INTERFACE s_axilite port=kernel_cols bundle=control
#pragma HLS INTERFACE s_axilite port=stride_rows bundle=control
#pragma HLS INTERFACE s_axilite port=stride_cols bundle=control
#pragma HLS INTERFACE s_axilite port=pad_rows bundle=control
#pragma HLS INTERFACE s_axilite port=pad_cols bundle=control
#pragma HLS INTERFACE s_axilite port=step_rows bundle=control
#pragma HLS INTERFACE s_axilite port=step_cols bundle=control
#pragma HLS INTERFACE s_axilite port=divisor bundle=control
#pragma HLS INTERFACE s_axilite port=tile_rows bundle=control
#pragma HLS INTERFACE s_axilite port=tile_cols bundle=control
#pragma HLS INTERFACE s_axilite port=source_image bundle=control
#pragma HLS INTERFACE s_axilite port=source_channel bundle=control
#pragma HLS INTERFACE s_axilite port=source_row bundle=control
#pragma HLS INTERFACE s_axilite port=source_col bundle=control
#pragma HLS INTERFACE s_axilite port=result_image bundle=control
#pragma HLS INTERFACE s_axilite port=result_channel bundle=control
#pragma HLS INTERFACE s_axilite port=result_row bundle=control
#pragma HLS INTERFACE s_axilite port=result_col bundle=control
#pragma HLS INTERFACE s_axilite port=index_image bundle=control
#pragma HLS INTERFACE s_axilite port=index_channel bundle=control
#pragma HLS INTERFACE s_axilite port=index_row bundle=control
#pragma HLS INTERFACE s_axilite port=index_col bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
// No loop of a pipeline multiplies: what is left can share multipliers.
#pragma HLS ALLOCATION operation instances=mul limit=4

    const Axis down = {rows, out_rows, kernel_rows, stride_rows, pad_rows, step_rows, tile_rows};
    const Axis across = {cols, out_cols, kernel_cols, stride_cols, pad_cols, step_cols, tile_cols};
    const Job job = {op, batch, channels, divisor, down, across};
    const Strides from = {source_image, source_channel, source_row, source_col};
    const Strides to = {result_image, result_channel, result_row, result_col};
    const Strides of_indices = {index_image, index_channel, index_row, index_col};
    if (batch <= 0 || channels <= 0 || rows <= 0 || cols <= 0 || out_rows <= 0 || out_cols <= 0) return;
    if (op & BACKWARD) {
        backward(source, result, indices, job, from, to, of_indices);
    } else if (tile_rows > 0 && tile_cols > 0) {
        forward(source, result, indices, job, from, to, of_indices, tiles_of(job));
    }
}
