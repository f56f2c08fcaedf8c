// The 3x3 neighbourhood of each pixel of an image that arrives row by row; sobel and gauss use it.
//
// The neighbours of a pixel arrive over more than two rows. Two line buffers keep the two rows above
// the one that arrives, and a window of nine registers slides over all three:
//
//     two rows above   window[0][0..2]   <- upper[col]
//     the row above    window[1][0..2]   <- lower[col]
//     arriving         window[2][0..2]   <- pixel
//
// Border rule: pixels outside the image count as 0. So a column of zeros follows every row, which is
// also the column before the next row, and a row of zeros follows the image.
#pragma once
#include <ap_axi_sdata.h>
#include <hls_stream.h>

namespace lines3x3 {

constexpr int MAX_WIDTH = 1920;
constexpr int COLUMNS = MAX_WIDTH + 1;  // with the column of zeros
using Beat = ap_axiu<8, 0, 0, 0>;       // a pixel a beat, TLAST

// Moves the window a column to the right. Each line buffer is read and written at one address, which
// the two ports of a BRAM do in one cycle.
inline void slide(int window[3][3], unsigned char upper[COLUMNS], unsigned char lower[COLUMNS], int row, int col,
                  int pixel) {
window_loop:
    for (int y = 0; y < 3; ++y) {  // unrolled, since the loop around it is a pipeline
        window[y][0] = window[y][1];
        window[y][1] = window[y][2];
    }
    window[0][2] = row > 0 ? upper[col] : 0;  // in row 0 the buffers hold an earlier image
    window[1][2] = row > 0 ? lower[col] : 0;
    window[2][2] = pixel;
    upper[col] = static_cast<unsigned char>(window[1][2]);
    lower[col] = static_cast<unsigned char>(pixel);
}

// A pixel of the result; TLAST ends the packet of the image.
inline Beat beat_of(int value, bool last) {
    Beat beat;
    beat.data = value;
    beat.keep = 1;
    beat.strb = 1;
    beat.last = last;
    return beat;
}

}  // namespace lines3x3
