// Testbench of gauss_fixed: by whole weights and a division, at every pixel of images of many sizes.
#include "gauss_fixed.hpp"

#include <cmath>

#include "../../include/lines3x3_tb.hpp"

static int golden(const lines3x3_tb::Image& image, int row, int col) {
    const int weights[3][3] = {{19, 32, 19}, {32, 52, 32}, {19, 32, 19}};
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) sum += weights[i][j] * image.at(row + i - 1, col + j - 1);
    }
    return static_cast<int>(std::floor(sum / 256.0 + 0.5));
}

int main() { return lines3x3_tb::check_all("gauss_fixed", gauss_fixed, golden) == 0 ? 0 : 1; }
