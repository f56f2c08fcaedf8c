// depthwise_i8: convolution in int8 where each channel is a group of its own.
//
// | parameter   | value | why                                                                     |
// |-------------|-------|-------------------------------------------------------------------------|
// | LANES       | 4     | 4 of the 220 DSPs: one for a product                                    |
// | PIXELS      | 1024  | sums on chip                                                            |
// | OUTS        | 1     | one channel at a time                                                   |
// | ROWS        | 64    | of a channel on chip, LANES banks of them                               |
// | WIDTH       | 128   | cells in such a row                                                     |
// | TAPS        | 128   | an 11 x 11 weight                                                       |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed              |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS                   |
#pragma once
#include <cstdint>

namespace depthwise_i8_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 1 << 16;  // elements behind each pointer in co-simulation

struct Shape {
    using Value = int8_t;
    using Sum = int32_t;
    static constexpr int LANES = 4, PIXELS = 1024, OUTS = 1, ROWS = 64;
    static constexpr int WIDTH = 128, TAPS = 128;
};
}  // namespace depthwise_i8_config

// `job` points to the words of a conv2d::Job (conv2d_job.hpp), which has the names below.
//
// For each group and image: result[o][y][x] = sum over channels c and taps (i, j) of
//   weight[o][c][i][j] * image[c][(y * stride_y + i * step_y - pad_y) / gap_y][x likewise with j]
// channels and outs are those of a group; height x width is the image, rows x columns the result,
// k_rows x k_columns the weight. stride, step and gap are at least 1, a pad may be negative. The image, the
// weight and the result have steps of their own in elements (from group to group, ...), of any sign. The
// result may not overlap what is read. channels is 1, gap is 1, tile_k_* are k_rows and k_columns; tile_rows
// x tile_columns pixels are worked on at a time. A plan beyond PIXELS, TAPS, ROWS or WIDTH does nothing.
//
// mode is that of gemm (gemm_epilogue.hpp): result receives int32, or float32 by its bits; steps receives
// int8. bias and scale have a value for each output channel (group * outs + o).
void depthwise_i8(const int8_t* image, const int8_t* weight, const int32_t* bias, const float* scale,
                  int32_t* result, int8_t* steps, const int32_t* job);
