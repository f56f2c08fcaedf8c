// Testbench of conv2d_f32: against plain loops, with guards, windows of every kind and plans beyond the tiles.
#include "conv2d_f32.hpp"

#include "../../include/conv2d_tb_float.hpp"

int main() {
    using namespace conv2d_f32_config;
    int errors = 0;
    for (const conv2d_tb::Case& c : conv2d_tb::CASES) {
        const conv2d::Tiling tiling = conv2d_tb::plan(c, Shape::PIXELS, Shape::PATCH, Shape::TAPS);
        for (int mode = 0; mode < 16; mode += 4) {
            errors += conv2d_tb::check_float("conv2d_f32", conv2d_f32, c, mode, tiling);
        }
    }
    return errors == 0 ? 0 : 1;
}
