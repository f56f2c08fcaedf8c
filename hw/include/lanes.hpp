// Partial results in lanes: how a sum of floats takes one element a cycle.
//
// A floating-point adder answers after several cycles, so a loop around `sum += x[i]` may start
// only every so many cycles: its II is the adder's latency (5 at 10 ns on a Zynq-7000, 7 and more at
// faster clocks). Here element i goes to sum i % LANES. Each of the sums is met again after LANES
// cycles, longer than the adder takes, and one tree adds them up at the end. It is another order of
// adding, with a smaller bound of the error.
//
// Where neighbours in memory belong to different results (`column`), every result has a lane of its
// own and nothing is folded. S is the kernel's table of sizes: S::TILE and S::LANES.
#pragma once
#include <cmath>
#include <limits>

namespace lanes {
constexpr float INFINITE = std::numeric_limits<float>::infinity();

inline int at_most(int value, int limit) { return value < limit ? value : limit; }

// The p-th root. Half the DSPs of another pow, which would not be shared with the one before.
inline float root(float x, float p) { return std::exp(std::log(x) / p); }

// The larger one; NaN wins over everything, as torch has it.
inline float larger(float x, float y) { return y > x || y != y ? y : x; }

template <class S> constexpr int groups_of(int count) { return (count + S::LANES - 1) / S::LANES; }

// `count` elements that lie `step` apart; the last group of lanes is filled up with what adds
// nothing, so that no loop behind has to ask whether a lane is in use.
template <class S>
void load(const float* memory, int step, float tile[S::TILE], int count, float fill) {
    if (step == 1) {
    burst_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
            tile[i] = memory[i];
        }
    } else {
    step_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
            tile[i] = memory[i * step];
        }
    }
fill_loop:
    for (int i = count; i < groups_of<S>(count) * S::LANES; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=0 max=7
        tile[i] = fill;
    }
}

template <class S>
void store(float* memory, int step, const float tile[S::TILE], int count) {
    if (step == 1) {
    burst_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
            memory[i] = tile[i];
        }
    } else {
    step_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
            memory[i * step] = tile[i];
        }
    }
}

// Set the lanes in use to one value.
template <class S> void clear(float state[S::TILE], int width, float value) {
clear_loop:
    for (int i = 0; i < groups_of<S>(width) * S::LANES; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
        state[i] = value;
    }
}

// state = combine(state, tile) lane by lane; `term(x, at)` is what becomes of an element before.
template <class S, class Term, class Combine>
void accumulate(float state[S::TILE], const float tile[S::TILE], int count, bool column, Term term, Combine combine) {
group_loop:
    for (int group = 0; group < groups_of<S>(count); ++group) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=128
    lane_loop:
        for (int lane = 0; lane < S::LANES; ++lane) {
#pragma HLS PIPELINE II=1
// A lane comes again after all the others.
#pragma HLS DEPENDENCE variable=state type=inter direction=RAW distance=S::LANES true
            const int at = (column ? group * S::LANES : 0) + lane;
            state[at] = combine(state[at], term(tile[group * S::LANES + lane], at));
        }
    }
}

// The tree: afterwards lane 0 holds the result.
template <class S, class Combine> void fold(float state[S::TILE], Combine combine) {
    static_assert((S::LANES & (S::LANES - 1)) == 0, "lanes are folded in halves");
    static_assert(S::TILE % S::LANES == 0, "a full tile is whole groups of lanes");
fold_loop:
    for (int half = S::LANES / 2; half > 0; half /= 2) {
    pair_loop:  // two reads and a write of one memory, which has two ports
        for (int lane = 0; lane < half; ++lane) {
#pragma HLS PIPELINE II=2
#pragma HLS LOOP_TRIPCOUNT min=1 max=8
#pragma HLS LOOP_FLATTEN off
// Lanes below half are written, and what a later iteration reads is its own lane and one from half on.
// The next half begins when the pipeline is empty: the loops stay two.
#pragma HLS DEPENDENCE variable=state type=inter dependent=false
            state[lane] = combine(state[lane], state[lane + half]);
        }
    }
}

// Give every lane what lane 0 has.
template <class S> void spread(float state[S::TILE]) {
spread_loop:
    for (int lane = 1; lane < S::LANES; ++lane) {
#pragma HLS PIPELINE II=1
        state[lane] = state[0];
    }
}
}  // namespace lanes
