// gauss: an image smoothed by the 3x3 binomial filter, a small Gaussian.
//
// | parameter  | value | why                                                                   |
// |------------|-------|-----------------------------------------------------------------------|
// | MAX_WIDTH  | 1920  | full HD: a line buffer of 1921 bytes is one BRAM of 18 Kbit (lines3x3.hpp) |
// | MAX_HEIGHT | 1080  | for the report of the latency only: any number works                |
#pragma once
#include "../../include/lines3x3.hpp"

namespace gauss_config {
using lines3x3::Beat;
using lines3x3::COLUMNS;
constexpr int MAX_HEIGHT = 1080;
constexpr int ROWS = MAX_HEIGHT + 1;
}  // namespace gauss_config

// Reads columns * rows pixels, row by row, and writes as many, TLAST with the last one; TLAST of the
// input does not count. Pixels outside the image are 0. Columns above lines3x3::MAX_WIDTH, and
// columns or rows below 1, read and write nothing.
void gauss(hls::stream<lines3x3::Beat>& pixels, hls::stream<lines3x3::Beat>& smooth, int columns, int rows);
