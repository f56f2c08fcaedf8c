// sobel_fixed: a pixel a cycle, and the length of the gradient within 4 %, without a root.
#include "sobel_fixed.hpp"

using namespace sobel_fixed_config;

// Of two amounts, 0.96 times the longer and 0.40 times the shorter are together 0.961 to 1.041 times the
// root of their squares; the sum of the two, which sobel takes, is up to 41 % too long.
static int value_of(const int w[3][3]) {
    const int across = w[0][2] + 2 * w[1][2] + w[2][2] - w[0][0] - 2 * w[1][0] - w[2][0];
    const int down = w[2][0] + 2 * w[2][1] + w[2][2] - w[0][0] - 2 * w[0][1] - w[0][2];
    const Amount a = across < 0 ? -across : across;
    const Amount b = down < 0 ? -down : down;
    const Amount longer = a > b ? a : b;
    const Amount shorter = a > b ? b : a;
    // A product has all of its bits: rounding and saturation happen once, where the sum becomes a Pixel.
    const Pixel y = LONGER * longer + SHORTER * shorter;
    return y.to_int();
}

void sobel_fixed(hls::stream<Beat>& pixels, hls::stream<Beat>& edges, int columns, int rows) {
#pragma HLS INTERFACE axis port=pixels
#pragma HLS INTERFACE axis port=edges
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
            if (row > 0 && col > 0) edges.write(lines3x3::beat_of(value_of(window), last));
        }
    }
}
