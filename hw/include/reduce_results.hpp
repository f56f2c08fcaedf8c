// The outer loops of reduce_f32: for every result a walk, then what is made of it, and the store.
#pragma once
#include "reduce.hpp"

namespace reduce {
// The mean of `width` results into s.center. What is added up are the differences to the first
// element, so that a mean far from zero costs the deviations no digits.
template <class S> void find_center(const float* x, State<S>& s, Walk w, int width, Task task) {
    const float count = static_cast<float>(w.size.outer) * w.size.middle * w.size.inner;
    lanes::load<S>(x, w.across, s.center, width, 0.0f);
    walk<S>(x, s, w, width, task, false);
center_loop:
    for (int i = 0; i < width; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
        s.center[i] = s.center[i] + s.total[i] / count;
    }
}

// `width` results side by side (rows: one) into s.total and s.at.
template <class S> void reduce_strip(const float* x, State<S>& s, Walk w, int width, Task task) {
    if (task.term == S::DEVIATION) find_center<S>(x, s, w, width, task);
    walk<S>(x, s, w, width, task, true);
}

template <class S> void store_places(const int place[S::TILE], int64_t* index, int step, int count) {
    if (step == 1) {
    burst_loop:
        for (int l = 0; l < count; ++l) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
            index[l] = place[l];
        }
    } else {
    single_loop:
        for (int l = 0; l < count; ++l) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
            index[l * step] = place[l];
        }
    }
}

template <class S>
void results(const float* x, float* y, int64_t* index, Task task, Triple kept, Triple x_kept, Triple y_kept, Walk w) {
    State<S> s;
    float value[S::TILE];
    int place[S::TILE];
outer_loop:
    for (int o = 0; o < kept.outer; ++o) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
    middle_loop:
        for (int m = 0; m < kept.middle; ++m) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
        strip_loop:
            for (int i = 0; i < kept.inner; i += S::TILE) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
                const int width = lanes::at_most(kept.inner - i, S::TILE), step = w.column ? width : 1;
                const float* from = x + o * x_kept.outer + m * x_kept.middle + i * x_kept.inner;
                const int to = o * y_kept.outer + m * y_kept.middle + i * y_kept.inner;
            result_loop:
                for (int j = 0; j < width; j += step) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
                    reduce_strip<S>(from + j * x_kept.inner, s, w, step, task);
                finish_loop:
                    for (int l = 0; l < step; ++l) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
                        value[j + l] = finish<S>(s.total[l], task.finish, task.divisor, task.p);
                        place[j + l] = s.at[l];
                    }
                }
                lanes::store<S>(y + to, y_kept.inner, value, width);
                if (task.combine == S::ARGMAX || task.combine == S::ARGMIN) {
                    store_places<S>(place, index + to, y_kept.inner, width);
                }
            }
        }
    }
}
}  // namespace reduce
