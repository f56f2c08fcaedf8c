// move, the part with an index: gathers and scatter-adds, and the loops around all of them.
#pragma once
#include "move.hpp"

namespace move {

template <class C>
void gather_words(const int* src, const int chosen[C::TILE], int row[C::TILE], int from, int t, const Walk& w) {
    const int first = t * C::TILE, count = piece<C>(first, w.n[3]);
gather_word_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::TILE
        row[i] = src[from + (first + i) * w.s[3] + chosen[i] * w.step];
    }
}

// Dataflow over the loop: indices of a piece are loaded while words of the one before are fetched.
template <class C>
void gather_pieces(const int* src, const int* index, int* dst, int from, int at, int to, const Walk& w, int pieces) {
gather_loop:
    for (int t = 0; t < pieces; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
#pragma HLS DATAFLOW
        int chosen[C::TILE];
        int row[C::TILE];
        load_piece<C>(index, chosen, at, w.x[3], t, w.n[3]);
        gather_words<C>(src, chosen, row, from, t, w);
        store_piece<C>(row, dst, to, w.d[3], t, w.n[3]);
    }
}

template <class C>
void gather_row(const int* src, const int* index, int* dst, int from, int at, int to, const Walk& w) {
    const int pieces = pieces_of<C>(w.n[3]);
    if (w.x[3] == 0) copy_row<C>(src, dst, from + index[at] * w.step, to, w.n[3], w.s[3], w.d[3], pieces);
    else gather_pieces<C>(src, index, dst, from, at, to, w, pieces);
}

inline int sum(int a, int b) {
    Word left, right;
    left.bits = a;
    right.bits = b;
    left.value += right.value;
    return left.bits;
}

template <class C>
void scatter_row(const int* src, const int* index, int* dst, int from, int at, int to, const Walk& w) {
    if (w.x[3] != 0 || w.d[3] == 0) {
    // A word may be the target of the next one too: one after the other: single accesses.
    scatter_word_loop:
        for (int i = 0; i < w.n[3]; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
            const int chosen = index[at + i * w.x[3]];
            const int place = to + i * w.d[3] + chosen * w.step;
            if (chosen != w.skip) dst[place] = sum(dst[place], src[from + i * w.s[3]]);
        }
        return;
    }
    const int chosen = index[at];
    if (chosen == w.skip) return;
    const int first = to + chosen * w.step;
scatter_loop:
    for (int t = 0; t < w.n[3]; t += C::TILE) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
        int row[C::TILE];
        int total[C::TILE];
        const int count = piece<C>(t, w.n[3]);
        load<C>(src, row, from + t * w.s[3], w.s[3], count);
        load<C>(dst, total, first + t * w.d[3], w.d[3], count);
    add_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=C::TILE
            total[i] = sum(total[i], row[i]);
        }
        store<C>(total, dst, first + t * w.d[3], w.d[3], count);
    }
}

template <class C> void run(const int* src, const int* index, int* dst, int op, const Walk& w) {
loop_0:
    for (int i0 = 0; i0 < w.n[0]; ++i0) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
    loop_1:
        for (int i1 = 0; i1 < w.n[1]; ++i1) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
            const int from = i0 * w.s[0] + i1 * w.s[1];
            const int at = i0 * w.x[0] + i1 * w.x[1];
            const int to = i0 * w.d[0] + i1 * w.d[1];
            if (op == C::TRANSPOSE) {
                transpose<C>(src, dst, from, to, w, blocks_of<C>(w));
                continue;
            }
        loop_2:
            for (int i2 = 0; i2 < w.n[2]; ++i2) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
                const int from_2 = from + i2 * w.s[2], at_2 = at + i2 * w.x[2], to_2 = to + i2 * w.d[2];
                if (op == C::COPY) {
                    copy_row<C>(src, dst, from_2, to_2, w.n[3], w.s[3], w.d[3], pieces_of<C>(w.n[3]));
                } else if (op == C::GATHER) {
                    gather_row<C>(src, index, dst, from_2, at_2, to_2, w);
                } else if (op == C::SCATTER_ADD) {
                    scatter_row<C>(src, index, dst, from_2, at_2, to_2, w);
                }
            }
        }
    }
}

}  // namespace move
