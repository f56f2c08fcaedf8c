// vadd: c = a + b over float32 vectors of any length.
//
// | parameter   | value | why                                                        |
// |-------------|-------|------------------------------------------------------------|
// | TILE        | 1024  | 4 KB a buffer, one BRAM36; long enough for 16-beat bursts  |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS      |
#pragma once

namespace vadd_config {
constexpr int TILE = 1024;
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 4096;  // elements behind each pointer in co-simulation

static_assert(TILE % BURST == 0, "a full tile is a whole number of bursts");
}  // namespace vadd_config

// a, b: n floats each; c: n floats, may not overlap a or b. n <= 0 does nothing.
void vadd(const float* a, const float* b, float* c, int n);
