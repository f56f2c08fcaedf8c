// Testbench of conv2d_i8: against plain loops, with guards, windows of every kind and plans beyond the tiles.
#include "conv2d_i8.hpp"

#include "../../include/conv2d_tb_int8.hpp"

int main() {
    using namespace conv2d_i8_config;
    static_assert(Shape::LANES == 32 && Shape::PIXELS == 256 && Shape::OUTS == 64 && Shape::PATCH == 4096 && Shape::TAPS == 128,
                  "the numbers that the driver plans with");
    int errors = 0;
    const auto check = [](const conv2d_tb::Case& c, int mode, conv2d::Tiling tiling, bool fits = true) {
        int wrong = 0;
        for (int kind = 0; kind < 3; ++kind) wrong += conv2d_tb::check_int8("conv2d_i8", conv2d_i8, c, mode | kind, tiling, fits);
        return wrong;
    };
    const conv2d_tb::Case* cases = conv2d_tb::CASES;
    // As large as they may be, and so small that an image has many.
    for (int pixels : {Shape::PIXELS, 12}) {
        for (const conv2d_tb::Case& c : conv2d_tb::CASES) {
            const conv2d::Tiling tiling = conv2d_tb::plan(c, pixels, Shape::PATCH, pixels == 12 ? 6 : Shape::TAPS);
            for (int mode = 0; mode < 16; mode += 4) errors += check(c, mode, tiling);
        }
    }
    const int p = Shape::PIXELS, t = Shape::TAPS;
    for (conv2d::Tiling tiling : {conv2d::Tiling{0, 1, 5, 5}, {1, 0, 5, 5}, {1, 1, 0, 5}, {1, 1, 5, 0}, {2, p, 5, 5}, {p, 2, 5, 5},
                                  {1, 1, 2, t}, {1, 1, t, 2}}) {
        errors += check(cases[1], 4, tiling, false);
    }
    errors += check(cases[7], 4, {16, 16, 2, 3}, false);
    errors += check(cases[1], 4, {p / 16, 16, 5, 5});
    return errors == 0 ? 0 : 1;
}
