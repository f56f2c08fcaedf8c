// Testbench of depthwise_i8: against plain loops, with guards, windows of every kind and plans beyond the tiles.
#include "depthwise_i8.hpp"

#include "../../include/conv2d_tb_int8.hpp"

int main() {
    using namespace depthwise_i8_config;
    static_assert(Shape::LANES == 4 && Shape::PIXELS == 1024 && Shape::OUTS == 1 && Shape::ROWS == 64 && Shape::WIDTH == 128 && Shape::TAPS == 128,
                  "the numbers that the driver plans with");
    int errors = 0;
    const auto check = [](const conv2d_tb::Case& c, int mode, conv2d::Tiling tiling, bool fits = true) {
        int wrong = 0;
        for (int kind = 0; kind < 3; ++kind) wrong += conv2d_tb::check_int8("depthwise_i8", depthwise_i8, c, mode | kind, tiling, fits);
        return wrong;
    };
    const conv2d_tb::Case* cases = conv2d_tb::CASES;
    // As large as they may be, and so small that an image has many.
    for (int pixels : {Shape::PIXELS, 12}) {
        for (const conv2d_tb::Case& any : conv2d_tb::CASES) {
            const conv2d_tb::Case c = conv2d_tb::depthwise(any);
            const conv2d::Tiling tiling = conv2d_tb::plan_depthwise(c, pixels, Shape::ROWS, Shape::WIDTH);
            if (tiling.rows < 1 || c.size.k_rows * c.size.k_columns > Shape::TAPS) continue;
            for (int mode = 0; mode < 16; mode += 4) errors += check(c, mode, tiling);
        }
    }
    for (int rows : {60, 61}) for (int columns : {124, 125}) {
        errors += check(conv2d_tb::depthwise(cases[1]), 4, {rows, columns, 5, 5}, false);
    }
    for (conv2d::Tiling tiling : {conv2d::Tiling{0, 1, 5, 5}, {1, 0, 5, 5}, {61, 1, 5, 5}, {1, 125, 5, 5}}) {
        errors += check(conv2d_tb::depthwise(cases[1]), 4, tiling, false);
    }
    errors += check(conv2d_tb::depthwise(cases[5]), 4, {1, 1, 29, 16}, false);
    errors += check(conv2d_tb::depthwise(cases[1]), 4, {8, 124, 5, 5});
    return errors == 0 ? 0 : 1;
}
