// The body of softmax_f32: rows of float32 in three passes, or two where they go backwards.
//
// | pass | forward                      | backward (a = gradient, b = result of forward)  |
// |------|------------------------------|-------------------------------------------------|
// | 0    | top = max(a)                 |                                                 |
// | 1    | sum = sum(exp(a - top))      | sum(a * b), for log_softmax sum(a)              |
// | 2    | exp(a - top) / sum, or       | b * (a - sum), or                               |
// |      | a - top - log(sum)           | a - exp(b) * sum                                |
//
// Without pass 0 exp would leave float32 at 89. Every pass reads the row again: memory gives a word
// in the cycle in which exp takes one, so keeping the row on chip would not make it faster.
#pragma once
#include "lanes.hpp"
#include "softmax_passes.hpp"

namespace softmax {
// Elements of one operand: base + o * outer + l * length + i * inner.
struct Strides {
    int outer, length, inner;
};
// What one pass goes through: row (outer, inner), or (column) `width` rows that begin there.
struct Span {
    int outer, inner, width, length;
    bool column;
};
// What tile t of it holds: a piece of the row, or the same element of `count` rows.
struct Piece {
    int element, count;
};

template <class S> Piece piece_of(Span s, int t) {
    if (s.column) return {t, s.width};
    return {t * S::TILE, lanes::at_most(s.length - t * S::TILE, S::TILE)};
}
inline int offset_of(Span s, Piece p, Strides by) {
    return s.outer * by.outer + p.element * by.length + s.inner * by.inner;
}

template <class S>
void load(const float* memory, Strides by, Span s, int t, bool wanted, float tile[S::TILE], float fill) {
    const Piece p = piece_of<S>(s, t);
    if (wanted) lanes::load<S>(memory + offset_of(s, p, by), s.column ? by.inner : by.length, tile, p.count, fill);
}

template <class S>
void compute(const float a[S::TILE], const float b[S::TILE], float c[S::TILE], float top[S::TILE], float sum[S::TILE],
             Span s, int t, int op, int pass) {
    const int count = piece_of<S>(s, t).count;
    if (pass < 2) gather<S>(a, b, top, sum, count, op, pass, s.column);
    else finish<S>(a, b, top, sum, c, count, op, s.column);
}

template <class S> void store(float* memory, Strides by, Span s, int t, bool wanted, const float tile[S::TILE]) {
    const Piece p = piece_of<S>(s, t);
    if (wanted) lanes::store<S>(memory + offset_of(s, p, by), s.column ? by.inner : by.length, tile, p.count);
}

// One pass. Dataflow over the loop: the next tile loads meanwhile, and the one before is stored.
template <class S>
void run_pass(const float* a, const float* b, float* c, Strides by_a, Strides by_b, Strides by_c, float top[S::TILE],
              float sum[S::TILE], Span s, int op, int pass, bool backward, float fill, int tiles) {
tile_loop:
    for (int t = 0; t < tiles; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
#pragma HLS DATAFLOW
        float a_tile[S::TILE], b_tile[S::TILE], c_tile[S::TILE];
        load<S>(a, by_a, s, t, true, a_tile, fill);
        load<S>(b, by_b, s, t, backward, b_tile, 0.0f);
        compute<S>(a_tile, b_tile, c_tile, top, sum, s, t, op, pass);
        store<S>(c, by_c, s, t, pass == 2, c_tile);
    }
}

template <class S>
void rows(const float* a, const float* b, float* c, int op, int outer, int length, int inner, Strides sa, Strides sb,
          Strides sc, bool column) {
    const bool backward = op == S::SOFTMAX_BACKWARD || op == S::LOG_SOFTMAX_BACKWARD;
    const float fill = backward ? 0.0f : -lanes::INFINITE;
    const int first = backward ? 1 : 0, tiles = column ? length : (length - 1) / S::TILE + 1;
    const int last = op == S::LOGSUMEXP ? 1 : 2;
    float top[S::TILE], sum[S::TILE];
outer_loop:
    for (int o = 0; o < outer; ++o) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
    inner_loop:
        for (int i = 0; i < inner; i += column ? S::TILE : 1) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
            const int width = column ? lanes::at_most(inner - i, S::TILE) : 1;
            const Span span = {o, i, width, length, column};
            lanes::clear<S>(top, width, -lanes::INFINITE);
            lanes::clear<S>(sum, width, 0.0f);
        pass_loop:
            for (int pass = first; pass <= last; ++pass) {
#pragma HLS LOOP_TRIPCOUNT min=2 max=3
                run_pass<S>(a, b, c, sa, sb, sc, top, sum, span, op, pass, backward, fill, tiles);
                if (pass < 2) settle<S>(top, sum, width, op, pass, column);
            }
            if (op == S::LOGSUMEXP) lanes::store<S>(c + o * sc.outer + i * sc.inner, sc.inner, sum, width);
        }
    }
}
}  // namespace softmax
