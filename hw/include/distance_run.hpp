// The loops of distance_f32 over batches, tiles and columns, and its dot product.
#pragma once
#include <type_traits>

#include "distance.hpp"

namespace distance {
#ifdef __SYNTHESIS__
// One datapath for all distances.
template <class S>
void add_any(const float a[S::ROWS][S::DEPTH], const float b[S::DEPTH][S::COLS], float sum[S::ROWS][S::COLS], Tile at,
             int k0, int length, int op, float p) {
    add<S>(a, b, sum, at, k0, length, op, p);
}
#else
// On a PC a loop for each distance, so that the compiler can put several elements in a register.
template <int OP> using Fixed = std::integral_constant<int, OP>;
template <class S>
void add_any(const float a[S::ROWS][S::DEPTH], const float b[S::DEPTH][S::COLS], float sum[S::ROWS][S::COLS], Tile at,
             int k0, int length, int op, float p) {
    switch (op) {
        case S::COUNT: return add<S>(a, b, sum, at, k0, length, Fixed<S::COUNT>(), p);
        case S::MANHATTAN: return add<S>(a, b, sum, at, k0, length, Fixed<S::MANHATTAN>(), p);
        case S::EUCLID: return add<S>(a, b, sum, at, k0, length, Fixed<S::EUCLID>(), p);
        case S::CHEBYSHEV: return add<S>(a, b, sum, at, k0, length, Fixed<S::CHEBYSHEV>(), p);
        default: return add<S>(a, b, sum, at, k0, length, op, p);
    }
}
#endif

// Dataflow over the loop: the next columns are loaded while these are added.
template <class S>
void add_steps(const float* a, const float* b, float sum[S::ROWS][S::COLS], Tile at, int length, Strides sa, Strides sb,
               int op, float p, int steps) {
step_loop:
    for (int t = 0; t < steps; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
#pragma HLS DATAFLOW
        float a_tile[S::ROWS][S::DEPTH], b_tile[S::DEPTH][S::COLS];
        load_rows<S>(a, sa, at, t * S::DEPTH, length, a_tile);
        load_columns<S>(b, sb, at, t * S::DEPTH, length, b_tile);
        add_any<S>(a_tile, b_tile, sum, at, t * S::DEPTH, length, op, p);
    }
}

template <class S>
void tile_of(const float* a, const float* b, float sum[S::ROWS][S::COLS], Tile at, int length, Strides sa, Strides sb,
             int op, float p) {
clear_loop:
    for (int i = 0; i < S::ROWS * S::COLS; ++i) {
#pragma HLS PIPELINE II=1
        sum[i / S::COLS][i % S::COLS] = 0.0f;
    }
    add_steps<S>(a, b, sum, at, length, sa, sb, op, p, (length + S::DEPTH - 1) / S::DEPTH);
}

template <class S>
void distances(const float* a, const float* b, float* c, int batches, int rows, int cols, int length, Strides sa,
               Strides sb, Strides sc, int op, float p) {
    static_assert(S::COLS % S::LANES == 0, "a row of a tile is whole groups of lanes");
    float sum[S::ROWS][S::COLS];
batch_loop:
    for (int n = 0; n < batches; ++n) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
    row_tiles:
        for (int i = 0; i < rows; i += S::ROWS) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
        column_tiles:
            for (int j = 0; j < cols; j += S::COLS) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=64
                const Tile at = {i, j, lanes::at_most(rows - i, S::ROWS), lanes::at_most(cols - j, S::COLS)};
                tile_of<S>(a + n * sa.batch, b + n * sb.batch, sum, at, length, sa, sb, op, p);
                store<S>(sum, c + n * sc.batch, sc, at, op, p);
            }
        }
    }
}

template <class S> void load_vector(const float* memory, int step, int first, int length, float tile[S::TILE]) {
    lanes::load<S>(memory + first * step, step, tile, lanes::at_most(length - first, S::TILE), 0.0f);
}

// A tile is summed up by itself, so that the error grows with its size and the number of tiles, not
// with the length.
template <class S>
void dot_tile(const float x[S::TILE], const float y[S::TILE], float total[S::TILE], int first, int length) {
    const int count = lanes::at_most(length - first, S::TILE);
    const auto plus = [](float v, float w) { return v + w; };
    const auto same = [](float v, int) { return v; };
    float product[S::TILE], block[S::TILE];
product_loop:
    for (int i = 0; i < lanes::groups_of<S>(count) * S::LANES; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::TILE
        product[i] = x[i] * y[i];
    }
    lanes::clear<S>(block, 1, 0.0f);
    lanes::accumulate<S>(block, product, count, false, same, plus);
    lanes::accumulate<S>(total, block, S::LANES, false, same, plus);
}

// Dataflow over the loop: the next tiles are loaded while these are multiplied.
template <class S>
void dot_tiles(const float* a, const float* b, float total[S::TILE], int length, int a_step, int b_step, int tiles) {
tile_loop:
    for (int t = 0; t < tiles; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
#pragma HLS DATAFLOW
        float x[S::TILE], y[S::TILE];
        load_vector<S>(a, a_step, t * S::TILE, length, x);
        load_vector<S>(b, b_step, t * S::TILE, length, y);
        dot_tile<S>(x, y, total, t * S::TILE, length);
    }
}

// c[0] = a . b
template <class S> void dot(const float* a, const float* b, float* c, int length, int a_step, int b_step) {
    float total[S::TILE];
    lanes::clear<S>(total, 1, 0.0f);
    dot_tiles<S>(a, b, total, length, a_step, b_step, (length + S::TILE - 1) / S::TILE);
    lanes::fold<S>(total, [](float v, float w) { return v + w; });
    c[0] = total[0];
}
}  // namespace distance
