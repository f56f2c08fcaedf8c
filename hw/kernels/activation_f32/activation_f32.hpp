// activation_f32: ReLU over float32 in a row, and its gradient: what a network needs between its products.
//
// | parameter   | value | why                                                        |
// |-------------|-------|------------------------------------------------------------|
// | TILE        | 512   | 2 KB a buffer, one BRAM of 18 Kbit; 32 bursts              |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS      |
#pragma once

namespace activation_f32_config {
constexpr int TILE = 512;
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 4096;  // elements behind each pointer in co-simulation

static_assert(TILE % BURST == 0, "a full tile is a whole number of bursts");

enum Op { RELU = 0, BACKWARD = 1 };
}  // namespace activation_f32_config

// RELU: y = x < 0 ? 0 : x, which keeps NaN; `gradient` is not read.
// BACKWARD: y = x <= threshold ? 0 : gradient, as torch has it; a NaN lets its gradient pass.
// n floats each; y may not overlap the others. n <= 0 does nothing.
void activation_f32(const float* gradient, const float* x, float* y, int op, float threshold, int n);
