// The float32 part of the testbenches of conv2d.
#pragma once
#include "conv2d_tb.hpp"
#include "cosim.hpp"

namespace conv2d_tb {
constexpr float GUARD = -12345.0f;

// A plan that does not fit leaves memory as it is.
template <typename Kernel>
int check_float(const char* name, Kernel kernel, Case c, int mode, Tiling tiling, bool fits = true) {
    const Size& s = c.size;
    const Layout li(s.groups, s.batch, s.channels, s.height, s.width, mode);
    const Layout lw(s.groups, s.outs, s.channels, s.k_rows, s.k_columns, mode), lr(s.groups, s.batch, s.outs, s.rows, s.columns, mode);
    std::vector<float> image(li.count), weight(lw.count), bias(s.groups * s.outs), result(lr.count, GUARD);
    cosim::deepen(1 << 16, image, weight, bias, result);  // COSIM_DEPTH of the kernels
    uint32_t state = 2024;
    for (float& value : image) value = static_cast<int32_t>(next(state)) / 2147483648.0f;
    for (float& value : weight) value = static_cast<int32_t>(next(state)) / 2147483648.0f;
    for (float& value : bias) value = static_cast<int32_t>(next(state)) / 2147483648.0f;
    weight[0] = INFINITY;  // beside the image it is no product, and so no NaN
    const std::vector<int32_t> job = job_of(c, li.steps, lw.steps, lr.steps, tiling, mode);
    kernel(image.data(), weight.data(), bias.data(), result.data(), job.data());
    int errors = 0;
    const int depth = s.channels * s.k_rows * s.k_columns;
    for (int g = 0; g < s.groups; ++g) {
        for (int n = 0; n < s.batch; ++n) {
            for (int p = 0; p < s.outs * s.rows * s.columns; ++p) {
                const int o = p / s.columns / s.rows, y = p / s.columns % s.rows, x = p % s.columns;
                double size;
                double value = exact(image, li.steps, weight, lw.steps, c, g, n, o, y, x, size);
                if (mode & BIAS) value += bias[g * s.outs + o];
                if (mode & RELU && value < 0) value = 0;
                if (!fits) value = GUARD;
                float& found = result[place(lr.steps, g, n, o, y, x)];
                const bool same = std::isinf(value) ? found == value : std::fabs(found - value) <= (depth + 2) * 6e-8 * (size + 1);
                if (!same && errors++ == 0) std::printf("  first wrong [%d][%d][%d][%d][%d]: %g, expected %g\n", g, n, o, y, x, found, value);
                found = GUARD;
            }
        }
    }
    for (float value : result) errors += value != GUARD;  // nothing beside the result may change
    std::printf("%s %d x %d, %d channels to %d, %dx%d of %dx%d, taps %dx%d, mode %d %s\n", name, s.groups, s.batch, s.channels,
                s.outs, s.rows, s.columns, s.height, s.width, s.k_rows, s.k_columns, mode, errors == 0 ? "PASS" : "FAIL");
    return errors;
}
}  // namespace conv2d_tb
