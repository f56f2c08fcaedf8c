// Testbench of conv2d_i8: against plain loops, with guards, windows of every kind and plans beyond the tiles.
#include "conv2d_i8.hpp"

#include "../../include/conv2d_tb_int8.hpp"

int main() {
    using namespace conv2d_i8_config;
    int errors = 0;
    for (const conv2d_tb::Case& c : conv2d_tb::CASES) {
        const conv2d::Tiling tiling = conv2d_tb::plan(c, Shape::PIXELS, Shape::PATCH, Shape::TAPS);
        for (int mode = 0; mode < 16; mode += 4) {
            for (int kind = 0; kind < 3; ++kind) errors += conv2d_tb::check_int8("conv2d_i8", conv2d_i8, c, mode | kind, tiling);
        }
    }
    return errors == 0 ? 0 : 1;
}
