// vadd_1: c = a + b over float32 vectors of any length; the first rung of the ladder.
//
// | parameter   | value | why                                                        |
// |-------------|-------|------------------------------------------------------------|
// | TILE        | 1024  | 4 KB a buffer, two BRAM18; a long run of bursts            |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS      |
#pragma once

namespace vadd_1_config {
constexpr int TILE = 1024;
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 4096;  // elements behind each pointer in co-simulation
}  // namespace vadd_1_config

// a, b: n floats each; c: n floats, may not overlap a or b. n <= 0 does nothing.
void vadd_1(const float* a, const float* b, float* c, int n);
