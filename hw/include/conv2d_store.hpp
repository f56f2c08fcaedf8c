// The outer loops of a conv2d kernel: tiles, steps over channels and taps; and the way out in float32.
#pragma once
#include "conv2d_job.hpp"
#include "conv2d_run.hpp"

namespace conv2d {
enum Mode { BIAS = 4, RELU = 8 };  // the bits that gemm uses

// A row of results: neighbours in memory go in bursts.
template <typename Value, typename Memory>
void store_line(const Value* line, Memory* memory, int64_t to, int step, int count) {
    if (step == 1) {
    burst_loop:
        for (int x = 0; x < count; ++x) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
            memory[to + x] = static_cast<Memory>(line[x]);
        }
    } else {
    single_loop:
        for (int x = 0; x < count; ++x, to += step) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
            memory[to] = static_cast<Memory>(line[x]);
        }
    }
}

// Float sums with bias and ReLU; -0 and NaN pass through it, as in torch.
struct FloatStore {
    template <typename S>
    static void store(const float sums[S::OUTS][S::PIXELS], Size size, Steps s, Tile at, int mode, const float* bias,
                      float* result) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    store_outs:
        for (int o = 0; o < at.outs; ++o) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::OUTS
            const float offset = mode & BIAS ? bias[at.group * size.outs + at.out + o] : 0.0f;
        store_rows:
            for (int y = 0, first = 0; y < at.rows; ++y, first += at.columns) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
                const int64_t to = place(s, at.group, at.batch, at.out + o, at.y + y, at.x);
                float line[S::PIXELS];
            finish_columns:
                for (int x = 0; x < at.columns; ++x) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
                    const float sum = sums[o][first + x];
                    const float value = mode & BIAS ? sum + offset : sum;
                    line[x] = mode & RELU && value < 0.0f ? 0.0f : value;
                }
                store_line(line, result, to, s.column, at.columns);
            }
        }
    }
};

// Dataflow over the loop: the next step's patch and weights are loaded while this one's are used.
template <typename S>
void sum_steps(const typename S::Value* image, const typename S::Value* weight, Size size, Window w, Steps si, Steps sw,
               Tiling tiling, Tile at, int outs, typename S::Sum sums[S::OUTS][S::PIXELS], int steps) {
step_loop:
    for (int s = 0; s < steps; ++s) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=256
#pragma HLS DATAFLOW
        typename S::Value patch[S::PATCH];
        int32_t kept[S::PATCH];
        typename S::Value weights[S::OUTS][S::TAPS];
        bool finite;
        load_patch<S>(image, si, size, w, tiling, at, s, patch, kept);
        load_weights<S>(weight, sw, size, tiling, at, s, outs, weights, finite);
        multiply<S>(patch, kept, weights, size, w, tiling, at, s, outs, finite, sums);
    }
}

template <typename S>
void sum_tile(const typename S::Value* image, const typename S::Value* weight, Size size, Window w, Steps si, Steps sw,
              Tiling tiling, Tile at, typename S::Sum sums[S::OUTS][S::PIXELS]) {
    const int least = whole(MIN_SUMS, whole(at.rows * at.columns, S::LANES));
    const int outs = at.outs < least ? least : at.outs;
    clear<S>(outs, whole(at.rows * at.columns, S::LANES) * S::LANES, sums);
    sum_steps<S>(image, weight, size, w, si, sw, tiling, at, outs, sums,
                 size.channels * whole(size.k_rows, tiling.k_rows) * whole(size.k_columns, tiling.k_columns));
}

// A plan that does not fit the buffers does nothing.
template <typename S>
bool fits(Window w, Tiling t) {
    return t.rows > 0 && t.columns > 0 && t.k_rows > 0 && t.k_columns > 0 && t.rows * t.columns <= S::PIXELS &&
           t.k_rows * t.k_columns <= S::TAPS &&
           static_cast<int64_t>(extent(t.rows, w.stride_y, t.k_rows, w.step_y)) *
                   extent(t.columns, w.stride_x, t.k_columns, w.step_x) <= S::PATCH;
}

// `ports` are what the Store reads and writes.
template <typename S, typename Store, typename... Ports>
void convolve(const typename S::Value* image, const typename S::Value* weight, Job job, Ports... ports) {
#pragma HLS ALLOCATION operation instances=mul limit=1
    typename S::Sum sums[S::OUTS][S::PIXELS];
    constexpr int LANES = S::LANES;
    static_assert(LANES > 0, "banks of sums");
#pragma HLS ARRAY_PARTITION variable=sums type=cyclic factor=LANES dim=2
    const Size size = job.size;
    const Tiling tiling = job.tiling;
    if (!fits<S>(job.window, tiling)) return;
    const int down = whole(size.rows, tiling.rows), across = whole(size.columns, tiling.columns);
group_loop:
    for (int group = 0; group < size.groups; ++group) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
    image_loop:
        for (int batch = 0; batch < size.batch; ++batch) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
        tile_loop:
            for (int t = 0; t < down * across; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
                const int y = t / across * tiling.rows, x = t % across * tiling.columns;
                const int rows = at_most(size.rows - y, tiling.rows), columns = at_most(size.columns - x, tiling.columns);
            out_loop:
                for (int out = 0; out < size.outs; out += S::OUTS) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
                    const Tile at = {group, batch, out, y, x, at_most(size.outs - out, S::OUTS), rows, columns};
                    sum_tile<S>(image, weight, size, job.window, job.image, job.weight, tiling, at, sums);
                    Store::template store<S>(sums, size, job.result, at, job.mode, ports...);
                }
            }
        }
    }
}
}  // namespace conv2d
