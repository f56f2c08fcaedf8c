// The way out of an int8 convolution: bias, scale, ReLU and the kind of number, to the bits of gemm.
#pragma once
#include "../kernels/gemm/gemm_epilogue.hpp"
#include "conv2d_store.hpp"

namespace conv2d {
// Two float cores with a rounding each, as gemm has.
struct FloatCores {
    static float times(float x, float y) { return x * y; }
    static float plus(float x, float y) { return x + y; }
};

struct IntStore {
    template <typename S>
    static void store(const int32_t sums[S::OUTS][S::PIXELS], Size size, Steps s, Tile at, int mode, const int32_t* bias,
                      const float* scale, int32_t* result, int8_t* steps) {
#pragma HLS ALLOCATION operation instances=mul limit=1
        using namespace gemm_core;
        const int kind = mode & KIND;
    store_outs:
        for (int o = 0; o < at.outs; ++o) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::OUTS
            const int channel = at.group * size.outs + at.out + o;
            const int32_t offset = mode & gemm_core::BIAS ? bias[channel] : 0;
            const float factor = kind != INT32 ? scale[channel] : 0.0f;
        store_rows:
            for (int y = 0, first = 0; y < at.rows; ++y, first += at.columns) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
                const int64_t to = place(s, at.group, at.batch, at.out + o, at.y + y, at.x);
                int32_t line[S::PIXELS];
            finish_columns:
                for (int x = 0; x < at.columns; ++x) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
                    const int32_t sum = sums[o][first + x];
                    if (kind == INT8) {
                        line[x] = static_cast<int32_t>(finish_int8<FloatCores>(sum, offset, factor, mode));
                    } else if (kind == FLOAT32) {
                        line[x] = finish_float32<FloatCores>(sum, offset, factor, mode);
                    } else {
                        line[x] = finish_int32(sum, offset, mode);
                    }
                }
                if (kind == INT8) store_line(line, steps, to, s.column, at.columns);
                else store_line(line, result, to, s.column, at.columns);
            }
        }
    }
};
}  // namespace conv2d
