// The outer loops of reduce_f32: for every result a walk, then what is made of it, and the store.
#pragma once
#include "reduce.hpp"

namespace reduce {
// The mean of `width` results into s.center. What is added up are the differences to the first
// element, so that a mean far from zero costs the deviations no digits.
template <class S> void find_center(const float* x, State<S>& s, Walk w, int width, Task task) {
    const float count = static_cast<float>(w.size.outer) * w.size.middle * w.size.inner;
first_loop:
    for (int i = 0; i < width; ++i) {
#pragma HLS PIPELINE II=1
        s.center[i] = x[i * w.across];
    }
    walk<S>(x, s, w, width, task, false);
center_loop:
    for (int i = 0; i < width; ++i) {
#pragma HLS PIPELINE II=1
        s.center[i] = s.center[i] + s.total[i] / count;
    }
}

// `width` results side by side (rows: one) into s.total and s.at.
template <class S> void reduce_strip(const float* x, State<S>& s, Walk w, int width, Task task) {
    if (task.term == S::DEVIATION) find_center<S>(x, s, w, width, task);
    walk<S>(x, s, w, width, task, true);
}

template <class S>
void results(const float* x, float* y, int64_t* index, Task task, Triple kept, Triple x_kept, Triple y_kept, Walk w) {
    State<S> s;
    float value[S::TILE];
    int place[S::TILE];
outer_loop:
    for (int o = 0; o < kept.outer; ++o) {
    middle_loop:
        for (int m = 0; m < kept.middle; ++m) {
        strip_loop:
            for (int i = 0; i < kept.inner; i += S::TILE) {
                const int width = lanes::at_most(kept.inner - i, S::TILE), step = w.column ? width : 1;
                const float* from = x + o * x_kept.outer + m * x_kept.middle + i * x_kept.inner;
                const int to = o * y_kept.outer + m * y_kept.middle + i * y_kept.inner;
            result_loop:
                for (int j = 0; j < width; j += step) {
                    reduce_strip<S>(from + j * x_kept.inner, s, w, step, task);
                finish_loop:
                    for (int l = 0; l < step; ++l) {
#pragma HLS PIPELINE II=1
                        value[j + l] = finish<S>(s.total[l], task.finish, task.divisor, task.p);
                        place[j + l] = s.at[l];
                    }
                }
                lanes::store<S>(y + to, y_kept.inner, value, width);
                if (task.combine == S::ARGMAX || task.combine == S::ARGMIN) {
                index_loop:
                    for (int l = 0; l < width; ++l) {
#pragma HLS PIPELINE II=1
                        index[to + l * y_kept.inner] = place[l];
                    }
                }
            }
        }
    }
}
}  // namespace reduce
