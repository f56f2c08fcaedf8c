// distance_f32: distances between the rows of two float32 matrices, and the dot product of two vectors.
//
// | parameter   | value | why                                                          |
// |-------------|-------|--------------------------------------------------------------|
// | ROWS        | 32    | rows of a tile of distances: 8 KB on chip                    |
// | COLS        | 64    | its columns, all of whose sums pass before one comes again   |
// | DEPTH       | 64    | elements of each row in a pair of buffers, 8 and 16 KB        |
// | TILE        | 1024  | elements of a vector in a buffer: 4 KB                       |
// | LANES       | 16    | sums side by side, more than a float adder has stages        |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed   |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS        |
#pragma once

namespace distance_f32_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 65536;  // elements behind each pointer in co-simulation

// Sizes and the values of `op`, as hw/include/distance.hpp takes them.
struct Shape {
    static constexpr int ROWS = 32;
    static constexpr int COLS = 64;
    static constexpr int DEPTH = 64;
    static constexpr int TILE = 1024;
    static constexpr int LANES = 16;
    static constexpr int COUNT = 0;
    static constexpr int MANHATTAN = 1;
    static constexpr int EUCLID = 2;
    static constexpr int CHEBYSHEV = 3;
    static constexpr int MINKOWSKI = 4;
    static constexpr int DOT = 5;
};
}  // namespace distance_f32_config

// For each batch: c[i][j] = distance of row i of a (rows x length) and row j of b (cols x length);
// op: count of elements that differ (p = 0), manhattan (1), euclid (2), chebyshev (infinity), or
// minkowski with the register p. op dot: c[0] = a . b over `length` elements *_step apart.
// Strides in elements; *_row from row to row, *_step from column to column. Sizes of 0 do nothing.
void distance_f32(const float* a, const float* b, float* c, int op, int batches, int rows, int cols, int length,
                  int a_batch, int a_row, int a_step, int b_batch, int b_row, int b_step, int c_batch, int c_row,
                  float p);
