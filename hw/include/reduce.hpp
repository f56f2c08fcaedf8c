// The body of reduce_f32: up to three dimensions of float32 become one value each, for every place
// in up to three others; one walk over the elements, or two where the mean comes first.
//
// Elements that follow each other in memory either belong to one result (rows: they are dealt to
// the lanes, which are folded at the end), or to neighbouring results (column: a lane each).
//
// Sums are kept short: after BLOCK groups of lanes the sums of the block are added to those of the
// whole, so that the error of n elements grows with n / BLOCK instead of n.
#pragma once
#include "reduce_terms.hpp"

namespace reduce {
struct Triple {
    int outer, middle, inner;
};
// term, combine and finish are numbers of the table in the kernel's header.
struct Task {
    int term, combine, finish;
    float divisor, p;
};
// Sizes and strides of the reduced dimensions, and the stride between neighbouring results.
struct Walk {
    Triple size, stride;
    int across;
    bool column;
};
struct Piece {
    int offset, step, count, position;
};

// Tile t of a walk: a stretch of the innermost dimension, or (column) one element of each result.
template <class S> Piece piece_of(Walk w, int t, int width) {
    const int stretches = w.column ? w.size.inner : (w.size.inner - 1) / S::TILE + 1;
    const int row = t / stretches, first = (t - row * stretches) * (w.column ? 1 : S::TILE);
    const int outer = row / w.size.middle, middle = row - outer * w.size.middle;
    const int offset = outer * w.stride.outer + middle * w.stride.middle + first * w.stride.inner;
    if (w.column) return {offset, w.across, width, t};
    return {offset, w.stride.inner, lanes::at_most(w.size.inner - first, S::TILE), row * w.size.inner + first};
}

template <class S> struct State {
    float total[S::TILE], block[S::TILE], center[S::TILE];
    int at[S::TILE];
    int filled;  // groups in the block
};

// Add the sums of the block to the whole; other combinations have no block.
template <class S> void flush(State<S>& s, int width, bool sums) {
flush_loop:
    for (int i = 0; i < lanes::groups_of<S>(width) * S::LANES; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
        s.total[i] = sums ? s.total[i] + s.block[i] : s.block[i];
        s.block[i] = 0.0f;
    }
    s.filled = 0;
}

template <class S> void load(const float* x, Walk w, int t, int width, float tile[S::TILE]) {
    const Piece piece = piece_of<S>(w, t, width);
    lanes::load<S>(x + piece.offset, piece.step, tile, piece.count, 0.0f);
}

template <class S>
void gather(const float tile[S::TILE], State<S>& s, Walk w, int t, int width, Task task, bool squared) {
    const Piece piece = piece_of<S>(w, t, width);
    const bool column = w.column;
    float y[S::TILE];
    const auto same = [](float x, int) { return x; };
    terms<S>(tile, y, s.center, piece.count, task.term, task.combine, squared, task.p, column);
    if (task.combine == S::ADD)
        lanes::accumulate<S>(s.block, y, piece.count, column, same, [](float a, float b) { return a + b; });
    else if (task.combine == S::MULTIPLY)
        lanes::accumulate<S>(s.block, y, piece.count, column, same, [](float a, float b) { return a * b; });
    else if (task.combine == S::MAX)
        lanes::accumulate<S>(s.block, y, piece.count, column, same, [](float v, float w) { return lanes::larger(v, w); });
    else if (task.combine == S::MIN)
        lanes::accumulate<S>(s.block, y, piece.count, column, same, [](float v, float w) { return smaller(v, w); });
    else
        accumulate_indexed<S>(s.block, s.at, y, piece.count, piece.position, task.combine == S::ARGMAX, column);
    s.filled += column ? 1 : lanes::groups_of<S>(piece.count);
    if (task.combine == S::ADD && s.filled >= S::BLOCK) flush<S>(s, width, true);
}

template <class S> void fold(State<S>& s, int combine) {
    if (combine == S::ADD) lanes::fold<S>(s.total, [](float a, float b) { return a + b; });
    else if (combine == S::MULTIPLY) lanes::fold<S>(s.total, [](float a, float b) { return a * b; });
    else if (combine == S::MAX) lanes::fold<S>(s.total, [](float v, float w) { return lanes::larger(v, w); });
    else if (combine == S::MIN) lanes::fold<S>(s.total, [](float v, float w) { return smaller(v, w); });
    else fold_indexed<S>(s.total, s.at, combine == S::ARGMAX);
}

// Dataflow over the loop: a tile is loaded while the one before is added up.
template <class S>
void gather_tiles(const float* x, State<S>& s, Walk w, int width, Task task, bool squared, int tiles) {
tile_loop:
    for (int t = 0; t < tiles; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
#pragma HLS DATAFLOW
        float tile[S::TILE];
        load<S>(x, w, t, width, tile);
        gather<S>(tile, s, w, t, width, task, squared);
    }
}

// One walk over all elements of `width` results (rows: of one); s.total has them afterwards.
template <class S> void walk(const float* x, State<S>& s, Walk w, int width, Task task, bool squared) {
    const int rows = w.size.outer * w.size.middle;
    const int tiles = rows * (w.column ? w.size.inner : (w.size.inner - 1) / S::TILE + 1);
    s.filled = 0;
    lanes::clear<S>(s.total, width, 0.0f);
    lanes::clear<S>(s.block, width, neutral<S>(task.combine));
clear_loop:
    for (int i = 0; i < lanes::groups_of<S>(width) * S::LANES; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
        s.at[i] = 0;
    }
    gather_tiles<S>(x, s, w, width, task, squared, tiles);
    flush<S>(s, width, task.combine == S::ADD);
    if (!w.column) fold<S>(s, task.combine);
}
}  // namespace reduce
