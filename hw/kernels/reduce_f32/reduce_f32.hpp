// reduce_f32: sums, means, products, extremes and where they are, norms and variances in float32.
//
// | parameter   | value | why                                                          |
// |-------------|-------|--------------------------------------------------------------|
// | TILE        | 1024  | 4 KB a buffer, two BRAM18; long enough for 16-beat bursts    |
// | LANES       | 16    | partial results, more than a float adder has stages          |
// | BLOCK       | 64    | groups of lanes in one partial sum: keeps rounding small     |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed   |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS        |
#pragma once
#include <cstdint>

namespace reduce_f32_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 65536;  // elements behind each pointer in co-simulation

// Sizes, and the values of `term`, `combine` and `finish`, as hw/include/reduce.hpp takes them.
struct Shape {
    static constexpr int TILE = 1024;
    static constexpr int LANES = 16;
    static constexpr int BLOCK = 64;

    static constexpr int SAME = 0;
    static constexpr int MAGNITUDE = 1;
    static constexpr int SQUARE = 2;
    static constexpr int NONZERO = 3;
    static constexpr int POWER = 4;
    static constexpr int DEVIATION = 5;

    static constexpr int ADD = 0;
    static constexpr int MULTIPLY = 1;
    static constexpr int MAX = 2;
    static constexpr int MIN = 3;
    static constexpr int ARGMAX = 4;
    static constexpr int ARGMIN = 5;

    static constexpr int KEEP = 0;
    static constexpr int DIVIDE = 1;
    static constexpr int ROOT_OF_MEAN = 2;
    static constexpr int ROOT = 3;
};
}  // namespace reduce_f32_config

// For each of k0 x k1 x k2 places: y = finish(combine(term(x) over r0 x r1 x r2 elements)).
// x_*: strides of x in elements, along the kept and the reduced dimensions. y_*: strides of y, and
// of index, which argmax and argmin fill with the place of the extreme counted through r0, r1, r2.
// divisor: of finish `divide` and `root_of_mean`. p: of term `power` and finish `root`.
// column: take up to TILE places along k2 at a time. Sizes of 0 do nothing.
void reduce_f32(const float* x, float* y, int64_t* index, int term, int combine, int finish, int k0, int k1, int k2,
                int r0, int r1, int r2, int x_k0, int x_k1, int x_k2, int x_r0, int x_r1, int x_r2, int y_k0, int y_k1,
                int y_k2, int column, float divisor, float p);
