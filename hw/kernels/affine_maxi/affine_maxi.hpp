// affine_maxi: y = gain * x + offset, the kernel itself reads and writes memory.
//
// | parameter   | value | why                                                        |
// |-------------|-------|------------------------------------------------------------|
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS      |
#pragma once
#include "../../include/affine.hpp"

namespace affine_maxi_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 4096;  // elements behind each pointer in co-simulation
}  // namespace affine_maxi_config

// x, y: n floats each; y may be x. n <= 0 does nothing.
void affine_maxi(const float* x, float* y, float gain, float offset, int n);
