// gauss: a pixel a cycle, whatever the image's size.
#include "gauss.hpp"

using namespace gauss_config;

// Weights 1 2 1, 2 4 2, 1 2 1: powers of two, so there is no multiplier. They sum to 16, and a shift
// divides by that; the 8 rounds to nearest, halves upwards.
static int value_of(const int w[3][3]) {
    const int corners = w[0][0] + w[0][2] + w[2][0] + w[2][2];
    const int sides = w[0][1] + w[1][0] + w[1][2] + w[2][1];
    return (corners + 2 * sides + 4 * w[1][1] + 8) >> 4;
}

void gauss(hls::stream<Beat>& pixels, hls::stream<Beat>& smooth, int columns, int rows) {
#pragma HLS INTERFACE axis port=pixels
#pragma HLS INTERFACE axis port=smooth
#pragma HLS INTERFACE s_axilite port=columns bundle=control
#pragma HLS INTERFACE s_axilite port=rows bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    if (columns < 1 || columns > lines3x3::MAX_WIDTH || rows < 1) return;
    unsigned char upper[COLUMNS], lower[COLUMNS];
    int window[3][3] = {};
#pragma HLS ARRAY_PARTITION variable=window complete dim=0

    // The pixel at (row, col) completes the neighbourhood of the one above and to the left of it: so
    // there is a row and a column more than in the image, and results begin in the second of each.
row_loop:
    for (int row = 0; row <= rows; ++row) {
#pragma HLS LOOP_TRIPCOUNT min=2 max=ROWS
    column_loop:
        for (int col = 0; col <= columns; ++col) {
            // In a row each address of the line buffers is used once. The next row uses it again, and
            // the pipeline is empty before that: so the rows are not made one long loop.
#pragma HLS LOOP_FLATTEN off
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=2 max=COLUMNS
            int pixel = 0;
            if (row < rows && col < columns) pixel = pixels.read().data.to_int();
            lines3x3::slide(window, upper, lower, row, col, pixel);
            const bool last = row == rows && col == columns;
            if (row > 0 && col > 0) smooth.write(lines3x3::beat_of(value_of(window), last));
        }
    }
}
