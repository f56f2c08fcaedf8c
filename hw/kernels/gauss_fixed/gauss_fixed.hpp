// gauss_fixed: an image smoothed by a Gaussian of sigma 1, weights in fixed point.
//
// | parameter  | value                | why                                                    |
// |------------|----------------------|--------------------------------------------------------|
// | MAX_WIDTH  | 1920                 | as gauss (lines3x3.hpp)                                |
// | MAX_HEIGHT | 1080                 | for the report of the latency only: any number works   |
// | Weight     | ap_ufixed<8, 0>      | 0 up to 1 in steps of 2^-8                             |
// | Pixel      | ap_ufixed<8, 8>      | a whole number, rounded; it cannot be above 255        |
#pragma once
#include <ap_fixed.h>

#include "../../include/lines3x3.hpp"

namespace gauss_fixed_config {
using lines3x3::Beat;
using lines3x3::COLUMNS;
constexpr int MAX_HEIGHT = 1080;
constexpr int ROWS = MAX_HEIGHT + 1;
using Weight = ap_ufixed<8, 0>;
using Sum = ap_uint<10>;                   // four pixels
using Pixel = ap_ufixed<8, 8, AP_RND>;     // to the nearest, halves upwards
// exp(-d^2 / 2) at the distances sqrt(2), 1 and 0, divided by the sum of the nine, and rounded so that
// they sum to 1: 4 * 19 + 4 * 32 + 52 = 256. A flat image stays as it is.
const Weight CORNER = 19 / 256.0, SIDE = 32 / 256.0, CENTER = 52 / 256.0;
}  // namespace gauss_fixed_config

// Reads columns * rows pixels, row by row, and writes as many, TLAST with the last one; TLAST of the
// input does not count. Pixels outside the image are 0. Columns above lines3x3::MAX_WIDTH, and
// columns or rows below 1, read and write nothing.
void gauss_fixed(hls::stream<lines3x3::Beat>& pixels, hls::stream<lines3x3::Beat>& smooth, int columns,
                 int rows);
