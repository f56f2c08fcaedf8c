// The arithmetic of softmax_f32, pass by pass; softmax.hpp has the table and walks over the rows.
#pragma once
#include <cmath>

#include "lanes.hpp"

namespace softmax {
// Pass 0 and 1: into the lanes of `top` or `sum`.
template <class S>
void gather(const float a[S::TILE], const float b[S::TILE], float top[S::TILE], float sum[S::TILE], int count, int op,
            int pass, bool column) {
    const auto same = [](float x, int) { return x; };
    const auto add = [](float x, float y) { return x + y; };
    if (pass == 0) {
        lanes::accumulate<S>(top, a, count, column, same, [](float v, float w) { return lanes::larger(v, w); });
    } else if (op == S::LOG_SOFTMAX_BACKWARD) {
        lanes::accumulate<S>(sum, a, count, column, same, add);
    } else {
        float term[S::TILE];
    term_loop:
        for (int i = 0; i < lanes::groups_of<S>(count) * S::LANES; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
            const int at = column ? i : i % S::LANES;
            term[i] = op == S::SOFTMAX_BACKWARD ? a[i] * b[i] : std::exp(a[i] - top[at]);
        }
        lanes::accumulate<S>(sum, term, count, column, same, add);
    }
}

// Pass 2: the elements of the result. `sum` holds log(sum) for log_softmax.
template <class S>
void finish(const float a[S::TILE], const float b[S::TILE], const float top[S::TILE], const float sum[S::TILE],
            float c[S::TILE], int count, int op, bool column) {
finish_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
        const int at = column ? i : i % S::LANES;
        if (op == S::SOFTMAX) c[i] = std::exp(a[i] - top[at]) / sum[at];
        else if (op == S::LOG_SOFTMAX) c[i] = (a[i] - top[at]) - sum[at];
        else if (op == S::SOFTMAX_BACKWARD) c[i] = b[i] * (a[i] - sum[at]);
        else c[i] = a[i] - std::exp(b[i]) * sum[at];
    }
}

// Between the passes: fold the lanes, and take the logarithm once a row.
template <class S> void settle(float top[S::TILE], float sum[S::TILE], int width, int op, int pass, bool column) {
    if (!column && pass == 0) lanes::fold<S>(top, [](float v, float w) { return lanes::larger(v, w); });
    if (!column && pass == 1) lanes::fold<S>(sum, [](float x, float y) { return x + y; });
settle_loop:
    for (int i = 0; i < width; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
        // The logarithm of a sum with an infinity in it is that infinity; inf - inf would be NaN.
        if (pass == 0 && op == S::LOGSUMEXP && std::fabs(top[i]) == lanes::INFINITE) top[i] = 0.0f;
        if (pass == 1 && op == S::LOG_SOFTMAX) sum[i] = std::log(sum[i]);
        if (pass == 1 && op == S::LOGSUMEXP) sum[i] = std::log(sum[i]) + top[i];
    }
    if (!column) lanes::spread<S>(pass == 0 ? top : sum);
}
}  // namespace softmax
