// sobel_fixed: the length of an image's gradient, in fixed point.
//
// | parameter  | value                | why                                                    |
// |------------|----------------------|--------------------------------------------------------|
// | MAX_WIDTH  | 1920                 | as sobel (lines3x3.hpp)                                |
// | MAX_HEIGHT | 1080                 | for the report of the latency only: any number works   |
// | Weight     | ap_ufixed<8, 0>      | 0 up to 1 in steps of 2^-8                             |
// | Amount     | ap_uint<10>          | a difference of two times four pixels: up to 1020      |
// | Pixel      | ap_ufixed<8, 8>      | a whole number, rounded and saturated                  |
#pragma once
#include <ap_fixed.h>

#include "../../include/lines3x3.hpp"

namespace sobel_fixed_config {
using lines3x3::Beat;
using lines3x3::COLUMNS;
constexpr int MAX_HEIGHT = 1080;
constexpr int ROWS = MAX_HEIGHT + 1;
using Weight = ap_ufixed<8, 0>;
using Amount = ap_uint<10>;
using Pixel = ap_ufixed<8, 8, AP_RND, AP_SAT>;  // to the nearest, halves upwards; above 255 it is 255
// Of the pairs in these steps the one that is as far off above as below: 4 %, see sobel_fixed.cpp.
const Weight LONGER = 246 / 256.0, SHORTER = 102 / 256.0;
}  // namespace sobel_fixed_config

// Reads columns * rows pixels, row by row, and writes as many, TLAST with the last one; TLAST of the
// input does not count. Pixels outside the image are 0. Columns above lines3x3::MAX_WIDTH, and
// columns or rows below 1, read and write nothing.
void sobel_fixed(hls::stream<lines3x3::Beat>& pixels, hls::stream<lines3x3::Beat>& edges, int columns,
                 int rows);
