// softmax_f32: softmax, its logarithm, logsumexp and what goes backwards through them, in float32.
//
// | parameter   | value | why                                                          |
// |-------------|-------|--------------------------------------------------------------|
// | TILE        | 1024  | 4 KB a buffer, two BRAM18; long enough for 16-beat bursts    |
// | LANES       | 16    | sums side by side, more than a float adder has stages        |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed   |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS        |
#pragma once

namespace softmax_f32_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 65536;  // elements behind each pointer in co-simulation

// Sizes and the values of `op`, as hw/include/softmax.hpp takes them.
struct Shape {
    static constexpr int TILE = 1024;
    static constexpr int LANES = 16;
    static constexpr int SOFTMAX = 0;
    static constexpr int LOG_SOFTMAX = 1;
    static constexpr int LOGSUMEXP = 2;
    static constexpr int SOFTMAX_BACKWARD = 3;
    static constexpr int LOG_SOFTMAX_BACKWARD = 4;
};
}  // namespace softmax_f32_config

// c = op(a, b) for `outer` x `inner` rows of `length` elements. Element l of row (o, i) of a lies at
// o * a_outer + l * a_length + i * a_inner, and so in b and c; logsumexp writes one element a row.
// a: the values, or backwards the gradient; b: backwards what softmax or log_softmax gave.
// column: take up to TILE rows along `inner` at a time. c may be a or b. Sizes of 0 do nothing.
void softmax_f32(const float* a, const float* b, float* c, int op, int outer, int length, int inner, int a_outer,
                 int a_length, int a_inner, int b_outer, int b_length, int b_inner, int c_outer, int c_length,
                 int c_inner, int column);
