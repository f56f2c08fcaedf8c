// Testbench of sobel_fixed: by the two 3x3 matrices and whole weights, at every pixel of images of many sizes.
#include "sobel_fixed.hpp"

#include <algorithm>
#include <cstdlib>

#include "../../include/lines3x3_tb.hpp"

static int golden(const lines3x3_tb::Image& image, int row, int col) {
    const int across[3][3] = {{-1, 0, 1}, {-2, 0, 2}, {-1, 0, 1}};
    int x = 0, y = 0;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) {
            x += across[i][j] * image.at(row + i - 1, col + j - 1);
            y += across[j][i] * image.at(row + i - 1, col + j - 1);
        }
    }
    x = std::abs(x);
    y = std::abs(y);
    return std::min((246 * std::max(x, y) + 102 * std::min(x, y) + 128) >> 8, 255);
}

int main() { return lines3x3_tb::check_all("sobel_fixed", sobel_fixed, golden) == 0 ? 0 : 1; }
