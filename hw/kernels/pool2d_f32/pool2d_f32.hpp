// pool2d_f32: Pools float32 images over windows: maximum with indices, average, adaptive average, and the gradient of each.
#pragma once
#include <cstdint>

#include "../../include/pool2d.hpp"

namespace pool2d_f32_config {
constexpr int OUTSTANDING = 8;      // bursts that a port may have under way: DDR answers after 37 to 85 cycles
constexpr int BURST = 16;           // the longest of an AXI3 port of the Zynq-7000 PS
constexpr int COSIM_DEPTH = 65536;  // elements behind each pointer in co-simulation
}  // namespace pool2d_f32_config

// op: see pool2d::Op. Forward, `source` is the input and `result` the output; backward they are the
// gradients of the output and of the input, which is then written whole. `indices` belong to the output:
// written by MAX, read by its backward, untouched by averages. divisor 0: what torch divides by.
// tile_rows, tile_cols: outputs of a tile, forward only; tile_rows * tile_cols <= pool2d::TILE, and
// what their windows see is at most pool2d::BAND pixels. Strides in elements, by image, channel, row, column.
void pool2d_f32(const float* source, float* result, int64_t* indices, int op, int batch, int channels,
                int rows, int cols, int out_rows, int out_cols, int kernel_rows, int kernel_cols,
                int stride_rows, int stride_cols, int pad_rows, int pad_cols, int step_rows, int step_cols,
                int divisor, int tile_rows, int tile_cols,
                int source_image, int source_channel, int source_row, int source_col,
                int result_image, int result_channel, int result_row, int result_col,
                int index_image, int index_channel, int index_row, int index_col);
