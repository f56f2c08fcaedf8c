// Testbench of depthwise_i8: against plain loops, with guards, windows of every kind and plans beyond the tiles.
#include "depthwise_i8.hpp"

#include "../../include/conv2d_tb_int8.hpp"

int main() {
    using namespace depthwise_i8_config;
    int errors = 0;
    for (const conv2d_tb::Case& any : conv2d_tb::CASES) {
        const conv2d_tb::Case c = conv2d_tb::depthwise(any);
        const conv2d::Tiling tiling = conv2d_tb::plan_depthwise(c, Shape::PIXELS, Shape::ROWS, Shape::WIDTH);
        if (tiling.rows < 1 || c.size.k_rows * c.size.k_columns > Shape::TAPS) continue;
        for (int mode = 0; mode < 16; mode += 4) {
            for (int kind = 0; kind < 3; ++kind) errors += conv2d_tb::check_int8("depthwise_i8", depthwise_i8, c, mode | kind, tiling);
        }
    }
    return errors == 0 ? 0 : 1;
}
