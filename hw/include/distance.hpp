// The body of distance_f32: distances between the rows of two matrices, and the dot product.
//
// A tile of ROWS x COLS distances stays on chip while DEPTH columns of both matrices pass by at a
// time. Every cycle one element of one distance is added: a distance is met again after all the
// others of the tile, so that the adder's latency does not show and II=1 needs no lanes.
// The dot product has one sum only, and deals it to lanes (lanes.hpp).
#pragma once
#include <cmath>

#include "lanes.hpp"

namespace distance {
// Elements of an operand: base + batch * b + row * r + column * c.
struct Strides {
    int batch, row, step;
};
struct Tile {
    int row, col, rows, cols;
};

// How much further a pair of elements takes two rows apart.
template <class S> float further(float sum, float x, float y, int op, float p) {
    const float gap = std::fabs(x - y);
    if (op == S::CHEBYSHEV) return gap > sum ? gap : sum;  // NaN is passed over, as torch does it
    float term = gap;
    if (op == S::COUNT) term = gap > 0.0f ? 1.0f : gap;  // NaN stays NaN
    else if (op == S::EUCLID) term = gap * gap;
    else if (op == S::MINKOWSKI) term = std::pow(gap, p);
    return sum + term;
}

template <class S> float root_of(float sum, int op, float p) {
    if (op == S::EUCLID) return std::sqrt(sum);
    return op == S::MINKOWSKI ? lanes::root(sum, p) : sum;
}

template <class S>
void load_rows(const float* memory, Strides s, Tile at, int k0, int length, float tile[S::ROWS][S::DEPTH]) {
    const int depth = lanes::at_most(length - k0, S::DEPTH);
row_loop:
    for (int i = 0; i < at.rows; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::ROWS
        const int first = (at.row + i) * s.row + k0 * s.step;
        if (s.step == 1) {
        burst_loop:
            for (int k = 0; k < depth; ++k) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::DEPTH
                tile[i][k] = memory[first + k];
            }
        } else {
        single_loop:
            for (int k = 0; k < depth; ++k) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::DEPTH
                tile[i][k] = memory[first + k * s.step];
            }
        }
    }
}

// The other matrix lies on chip with its rows side by side.
template <class S>
void load_columns(const float* memory, Strides s, Tile at, int k0, int length, float tile[S::DEPTH][S::COLS]) {
    const int depth = lanes::at_most(length - k0, S::DEPTH);
column_loop:
    for (int j = 0; j < at.cols; ++j) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::COLS
        const int first = (at.col + j) * s.row + k0 * s.step;
        if (s.step == 1) {
        burst_loop:
            for (int k = 0; k < depth; ++k) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::DEPTH
                tile[k][j] = memory[first + k];
            }
        } else {
        single_loop:
            for (int k = 0; k < depth; ++k) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::DEPTH
                tile[k][j] = memory[first + k * s.step];
            }
        }
    }
}

// Op: an int, or one that the compiler knows. Sums beyond `cols` are made of what the buffers held
// before; they are never stored.
template <class S, class Op>
void add(const float a[S::ROWS][S::DEPTH], const float b[S::DEPTH][S::COLS], float sum[S::ROWS][S::COLS], Tile at,
         int k0, int length, Op op, float p) {
    const int depth = lanes::at_most(length - k0, S::DEPTH);
depth_loop:
    for (int k = 0; k < depth; ++k) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::DEPTH
    row_loop:
        for (int i = 0; i < at.rows; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::ROWS
        group_loop:
            for (int j = 0; j < at.cols; j += S::LANES) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=8
            lane_loop:
                for (int lane = 0; lane < S::LANES; ++lane) {
#pragma HLS PIPELINE II=1
// A sum comes again with the next k, after at least one group of LANES others.
#pragma HLS DEPENDENCE variable=sum type=inter direction=RAW distance=S::LANES true
                    sum[i][j + lane] = further<S>(sum[i][j + lane], a[i][k], b[k][j + lane], op, p);
                }
            }
        }
    }
}

// Results of a row lie side by side.
template <class S>
void store(const float sum[S::ROWS][S::COLS], float* memory, Strides s, Tile at, int op, float p) {
row_loop:
    for (int i = 0; i < at.rows; ++i) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::ROWS
        const int first = (at.row + i) * s.row + at.col;
        float line[S::COLS];
    root_loop:
        for (int j = 0; j < at.cols; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::COLS
            line[j] = root_of<S>(sum[i][j], op, p);
        }
    burst_loop:
        for (int j = 0; j < at.cols; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=S::COLS
            memory[first + j] = line[j];
        }
    }
}
}  // namespace distance
