// cordic: sine and cosine of many angles in fixed point, without a multiplier.
//
// | parameter   | value              | why                                                         |
// |-------------|--------------------|-------------------------------------------------------------|
// | Number      | ap_fixed<32, 3>    | -4 up to 4 in steps of 2^-29: room for pi, one word of memory |
// | Wide        | ap_fixed<40, 3>    | 8 bits more inside: 32 steps each cut off less than 2^-37   |
// | STEPS       | 32                 | the last one turns by 2^-31, less than Number can show      |
// | COSIM_DEPTH | 4096               | elements behind each pointer in co-simulation               |
#pragma once
#include <ap_fixed.h>

namespace cordic_config {
using Number = ap_fixed<32, 3>;
using Wide = ap_fixed<40, 3>;
constexpr int STEPS = 32;
constexpr int COSIM_DEPTH = 4096;
constexpr int BURST = 16;  // the longest burst of an AXI3 port of the Zynq-7000 PS
}  // namespace cordic_config

// angles: n numbers in radians, any of -4 up to 4; sines and cosines get n each, wrong by at most
// 2^-28. None of the three may overlap. n <= 0 does nothing.
void cordic(const cordic_config::Number* angles, cordic_config::Number* sines, cordic_config::Number* cosines, int n);
