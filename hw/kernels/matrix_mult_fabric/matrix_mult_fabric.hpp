// matrix_mult_fabric: the same function as matrix_mult without a DSP, to work beside it.
//
// | parameter   | value | why                                                               |
// |-------------|-------|-------------------------------------------------------------------|
// | SIZE        | 256   | 64 KB of in2 on chip, 15 BRAM36 in words of 64 bytes              |
// | WIDTH       | 64    | 64 MAC a cycle; an int8 multiplier takes 55 to 160 LUTs           |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed        |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS             |
#pragma once
#include <cstdint>

namespace matrix_mult_fabric_config {
constexpr int WIDTH = 64;
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int ELEMENTS = 256 * 256;  // behind each pointer
}  // namespace matrix_mult_fabric_config

// Arguments as in matrix_mult.hpp.
void matrix_mult_fabric(const int32_t* in1, const int32_t* in2, int32_t* out);
