// Testbench of gauss: by the weights and a division, at every pixel of images of many sizes.
#include "gauss.hpp"

#include <cmath>

#include "../../include/lines3x3_tb.hpp"

static int golden(const lines3x3_tb::Image& image, int row, int col) {
    const int weights[3] = {1, 2, 1};
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
        for (int j = 0; j < 3; ++j) sum += weights[i] * weights[j] * image.at(row + i - 1, col + j - 1);
    }
    return static_cast<int>(std::floor(sum / 16.0 + 0.5));
}

int main() { return lines3x3_tb::check_all("gauss", gauss, golden) == 0 ? 0 : 1; }
