// Testbench of depthwise_f32: against plain loops, with guards, windows of every kind and plans beyond the tiles.
#include "depthwise_f32.hpp"

#include "../../include/conv2d_tb_float.hpp"

int main() {
    using namespace depthwise_f32_config;
    int errors = 0;
    for (const conv2d_tb::Case& any : conv2d_tb::CASES) {
        const conv2d_tb::Case c = conv2d_tb::depthwise(any);
        const conv2d::Tiling tiling = conv2d_tb::plan_depthwise(c, Shape::PIXELS, Shape::ROWS, Shape::WIDTH);
        if (tiling.rows < 1 || c.size.k_rows * c.size.k_columns > Shape::TAPS) continue;
        for (int mode = 0; mode < 16; mode += 4) {
            errors += conv2d_tb::check_float("depthwise_f32", depthwise_f32, c, mode, tiling);
        }
    }
    return errors == 0 ? 0 : 1;
}
