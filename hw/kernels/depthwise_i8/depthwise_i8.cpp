// depthwise_i8: the body is depthwise.hpp; here are the ports.
#include "depthwise_i8.hpp"

#include "../gemm/gemm_epilogue.hpp"

#include "../../include/depthwise.hpp"
#include "../../include/conv2d_requantise.hpp"

using namespace depthwise_i8_config;

void depthwise_i8(const int8_t* image, const int8_t* weight, const int32_t* bias, const float* scale, int32_t* result, int8_t* steps,
                int groups, int batch, int channels, int outs, int height, int width, int rows,
                int columns, int k_rows, int k_columns, int stride_y, int stride_x, int pad_y, int pad_x,
                int step_y, int step_x, int gap_y, int gap_x, int image_group, int image_batch, int image_channel,
                int image_row, int image_column, int weight_group, int weight_out, int weight_channel, int weight_row, int weight_column,
                int result_group, int result_batch, int result_out, int result_row, int result_column, int tile_rows, int tile_columns,
                int tile_k_rows, int tile_k_columns, int mode) {
#pragma HLS INTERFACE m_axi port=image bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=weight bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=bias bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=scale bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=result bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=steps bundle=gmem3 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=image bundle=control
#pragma HLS INTERFACE s_axilite port=weight bundle=control
#pragma HLS INTERFACE s_axilite port=bias bundle=control
#pragma HLS INTERFACE s_axilite port=scale bundle=control
#pragma HLS INTERFACE s_axilite port=result bundle=control
#pragma HLS INTERFACE s_axilite port=steps bundle=control
#pragma HLS INTERFACE s_axilite port=groups bundle=control
#pragma HLS INTERFACE s_axilite port=batch bundle=control
#pragma HLS INTERFACE s_axilite port=channels bundle=control
#pragma HLS INTERFACE s_axilite port=outs bundle=control
#pragma HLS INTERFACE s_axilite port=height bundle=control
#pragma HLS INTERFACE s_axilite port=width bundle=control
#pragma HLS INTERFACE s_axilite port=rows bundle=control
#pragma HLS INTERFACE s_axilite port=columns bundle=control
#pragma HLS INTERFACE s_axilite port=k_rows bundle=control
#pragma HLS INTERFACE s_axilite port=k_columns bundle=control
#pragma HLS INTERFACE s_axilite port=stride_y bundle=control
#pragma HLS INTERFACE s_axilite port=stride_x bundle=control
#pragma HLS INTERFACE s_axilite port=pad_y bundle=control
#pragma HLS INTERFACE s_axilite port=pad_x bundle=control
#pragma HLS INTERFACE s_axilite port=step_y bundle=control
#pragma HLS INTERFACE s_axilite port=step_x bundle=control
#pragma HLS INTERFACE s_axilite port=gap_y bundle=control
#pragma HLS INTERFACE s_axilite port=gap_x bundle=control
#pragma HLS INTERFACE s_axilite port=image_group bundle=control
#pragma HLS INTERFACE s_axilite port=image_batch bundle=control
#pragma HLS INTERFACE s_axilite port=image_channel bundle=control
#pragma HLS INTERFACE s_axilite port=image_row bundle=control
#pragma HLS INTERFACE s_axilite port=image_column bundle=control
#pragma HLS INTERFACE s_axilite port=weight_group bundle=control
#pragma HLS INTERFACE s_axilite port=weight_out bundle=control
#pragma HLS INTERFACE s_axilite port=weight_channel bundle=control
#pragma HLS INTERFACE s_axilite port=weight_row bundle=control
#pragma HLS INTERFACE s_axilite port=weight_column bundle=control
#pragma HLS INTERFACE s_axilite port=result_group bundle=control
#pragma HLS INTERFACE s_axilite port=result_batch bundle=control
#pragma HLS INTERFACE s_axilite port=result_out bundle=control
#pragma HLS INTERFACE s_axilite port=result_row bundle=control
#pragma HLS INTERFACE s_axilite port=result_column bundle=control
#pragma HLS INTERFACE s_axilite port=tile_rows bundle=control
#pragma HLS INTERFACE s_axilite port=tile_columns bundle=control
#pragma HLS INTERFACE s_axilite port=tile_k_rows bundle=control
#pragma HLS INTERFACE s_axilite port=tile_k_columns bundle=control
#pragma HLS INTERFACE s_axilite port=mode bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    using namespace conv2d;
    const Size size = {groups, batch, channels, outs, height, width, rows, columns, k_rows, k_columns};
    const Window window = {stride_y, stride_x, pad_y, pad_x, step_y, step_x, gap_y, gap_x};
    const Steps si = {image_group, image_batch, image_channel, image_row, image_column};
    const Steps sw = {weight_group, weight_out, weight_channel, weight_row, weight_column};
    const Steps sr = {result_group, result_batch, result_out, result_row, result_column};
    const Tiling tiling = {tile_rows, tile_columns, tile_k_rows, tile_k_columns};
    depthwise::convolve<Shape, IntStore>(image, weight, size, window, si, sw, sr, tiling, mode, bias, scale, result, steps);
}
