// vadd_2: c = a + b over float32 vectors of any length; the second rung: dataflow and pipeline.
//
// | parameter   | value | why                                                        |
// |-------------|-------|------------------------------------------------------------|
// | FIFO        | 32    | bridges what one step waits for another; fits in LUTs      |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS      |
#pragma once

#include "hls_stream.h"

namespace vadd_2_config {
constexpr int FIFO = 32;
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 4096;  // elements behind each pointer in co-simulation
}  // namespace vadd_2_config

// a, b: n floats each; c: n floats, may not overlap a or b. n <= 0 does nothing.
void vadd_2(const float* a, const float* b, float* c, int n);
