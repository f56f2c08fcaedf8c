// The int8 part of the testbenches of conv2d: every kind of result, with the C library's roundings.
#pragma once
#include "../kernels/gemm/gemm_tb_epilogue.hpp"
#include "conv2d_tb.hpp"
#include "cosim.hpp"

namespace conv2d_tb {
// A plan that does not fit leaves memory as it is.
template <typename Kernel>
int check_int8(const char* name, Kernel kernel, Case c, int mode, Tiling tiling, bool fits = true) {
    using gemm_tb::put;
    using gemm_tb::same;
    const Size& s = c.size;
    const Layout li(s.groups, s.batch, s.channels, s.height, s.width, mode);
    const Layout lw(s.groups, s.outs, s.channels, s.k_rows, s.k_columns, mode), lr(s.groups, s.batch, s.outs, s.rows, s.columns, mode);
    const int channels = s.groups * s.outs;
    const bool bytes = (mode & gemm_core::KIND) == gemm_core::INT8;
    const float odd[] = {0.0f, 1e30f, INFINITY, NAN, 1e-30f};
    std::vector<int8_t> image(li.count), weight(lw.count), steps(lr.count, 77);
    std::vector<int32_t> bias(channels), result(lr.count, 77), one(1);
    std::vector<float> scale(channels);
    cosim::deepen(1 << 16, image, weight, steps, bias, result, scale);  // COSIM_DEPTH of the kernels
    uint32_t state = 2024;
    for (int8_t& value : image) value = next(state) % 5 ? next(state) >> 24 : -128;
    for (int8_t& value : weight) value = next(state) % 5 ? next(state) >> 24 : -128;
    for (int o = 0; o < channels; ++o) {
        scale[o] = next(state) % 4 ? static_cast<float>(static_cast<int8_t>(next(state) >> 24)) / 4096.0f : odd[next(state) % 5];
        bias[o] = static_cast<int32_t>(next(state)) >> 12;
        if ((mode & gemm_core::KIND) == gemm_core::FLOAT32) bias[o] = gemm_core::as_bits(static_cast<float>(bias[o]) * 0.37f);
    }
    const std::vector<int32_t> job = job_of(c, li.steps, lw.steps, lr.steps, tiling, mode);
    kernel(image.data(), weight.data(), bias.data(), scale.data(), result.data(), steps.data(), job.data());
    int errors = 0;
    for (int g = 0; g < s.groups; ++g) {
        for (int n = 0; n < s.batch; ++n) {
            for (int p = 0; p < s.outs * s.rows * s.columns; ++p) {
                const int o = p / s.columns / s.rows, y = p / s.columns % s.rows, x = p % s.columns, channel = g * s.outs + o;
                double size;
                const int32_t sum = static_cast<int32_t>(exact(image, li.steps, weight, lw.steps, c, g, n, o, y, x, size));
                put(one, 0, 0, sum, bias[channel], scale[channel], mode);
                const size_t at = place(lr.steps, g, n, o, y, x);
                const int32_t expected = !fits ? 77 : bytes ? static_cast<int8_t>(one[0] & 0xff) : one[0];
                const int32_t found = bytes ? steps[at] : result[at];
                if (!same(found, expected, mode) && errors++ == 0) {
                    std::printf("  first wrong [%d][%d][%d][%d][%d]: %d, expected %d\n", g, n, o, y, x, found, expected);
                }
                steps[at] = 77;
                result[at] = 77;
            }
        }
    }
    for (size_t i = 0; i < lr.count; ++i) errors += steps[i] != 77 || result[i] != 77;  // nothing beside it may change
    std::printf("%s %d x %d, %d channels to %d, %dx%d of %dx%d, taps %dx%d, mode %d %s\n", name, s.groups, s.batch, s.channels,
                s.outs, s.rows, s.columns, s.height, s.width, s.k_rows, s.k_columns, mode, errors == 0 ? "PASS" : "FAIL");
    return errors;
}
}  // namespace conv2d_tb
