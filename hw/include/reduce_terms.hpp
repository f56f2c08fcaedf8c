// The arithmetic of reduce_f32: what becomes of an element, how elements combine, what is made of
// the result. reduce.hpp walks over the memory.
#pragma once
#include <cmath>
#include <cstdint>

#include "lanes.hpp"

namespace reduce {
// The smaller one; NaN wins over everything.
inline float smaller(float x, float y) { return y < x || y != y ? y : x; }

// What changes no result when it is combined.
template <class S> float neutral(int combine) {
    if (combine == S::ADD) return 0.0f;
    if (combine == S::MULTIPLY) return 1.0f;
    return combine == S::MAX || combine == S::ARGMAX ? -lanes::INFINITE : lanes::INFINITE;
}

template <class S, class Map> void map(const float x[S::TILE], float y[S::TILE], int count, Map f) {
map_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
        y[i] = f(x[i], i);
    }
}

// y = term(x); the rest of the last group of lanes becomes neutral.
template <class S>
void terms(const float x[S::TILE], float y[S::TILE], const float center[S::TILE], int count, int term, int combine,
           bool squared, float p, bool column) {
    if (term == S::MAGNITUDE) map<S>(x, y, count, [](float v, int) { return std::fabs(v); });
    else if (term == S::SQUARE) map<S>(x, y, count, [](float v, int) { return v * v; });
    else if (term == S::NONZERO) map<S>(x, y, count, [](float v, int) { return v == 0.0f ? 0.0f : 1.0f; });
    else if (term == S::POWER) map<S>(x, y, count, [p](float v, int) { return std::pow(std::fabs(v), p); });
    else if (term == S::DEVIATION) {
    deviation_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
            const float d = x[i] - center[column ? i : 0];
            y[i] = squared ? d * d : d;
        }
    } else map<S>(x, y, count, [](float v, int) { return v; });
    const float fill = neutral<S>(combine);
fill_loop:
    for (int i = count; i < lanes::groups_of<S>(count) * S::LANES; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=0 max=7
        y[i] = fill;
    }
}

// Whether `value` at `index` comes before `best` at `at`: the greatest (smallest), the first of
// equals, and the first NaN before all.
inline bool wins(float value, int index, float best, int at, bool greatest) {
    if (best != best) return value != value && index < at;
    if (value != value) return true;
    if (value == best) return index < at;
    return greatest ? value > best : value < best;
}

// As lanes::accumulate, with the place of each extreme. Elements come in order, so that within a
// lane an equal one never replaces; that keeps the padding, which is neutral, out as well.
template <class S>
void accumulate_indexed(float state[S::TILE], int at[S::TILE], const float tile[S::TILE], int count, int position,
                        bool greatest, bool column) {
group_loop:
    for (int group = 0; group < lanes::groups_of<S>(count); ++group) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=128
    lane_loop:
        for (int lane = 0; lane < S::LANES; ++lane) {
#pragma HLS PIPELINE II=1
// A lane comes again after all the others.
#pragma HLS DEPENDENCE variable=state type=inter direction=RAW distance=S::LANES true
#pragma HLS DEPENDENCE variable=at type=inter direction=RAW distance=S::LANES true
            const int i = group * S::LANES + lane, own = column ? i : lane;
            const float value = tile[i], best = state[own];
            const bool taken = best == best && (value != value || (greatest ? value > best : value < best));
            state[own] = taken ? value : best;
            at[own] = taken ? position + (column ? 0 : i) : at[own];
        }
    }
}

template <class S> void fold_indexed(float state[S::TILE], int at[S::TILE], bool greatest) {
fold_loop:
    for (int half = S::LANES / 2; half > 0; half /= 2) {
    pair_loop:  // two reads and a write of each memory, which has two ports
        for (int lane = 0; lane < half; ++lane) {
#pragma HLS PIPELINE II=2
#pragma HLS LOOP_TRIPCOUNT min=1 max=8
#pragma HLS LOOP_FLATTEN off
// As in lanes::fold: a later iteration reads its own lane and one from half on, and none of those is written before.
#pragma HLS DEPENDENCE variable=state type=inter dependent=false
#pragma HLS DEPENDENCE variable=at type=inter dependent=false
            const int other = lane + half;
            if (wins(state[other], at[other], state[lane], at[lane], greatest)) {
                state[lane] = state[other];
                at[lane] = at[other];
            }
        }
    }
}

// What is made of a result at last.
template <class S> float finish(float value, int kind, float divisor, float p) {
    if (kind == S::DIVIDE) return value / divisor;
    if (kind == S::ROOT_OF_MEAN) return std::sqrt(value / divisor);
    if (kind == S::ROOT) return lanes::root(value, p);
    return value;
}
}  // namespace reduce
