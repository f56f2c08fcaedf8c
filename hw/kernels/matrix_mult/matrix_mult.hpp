// matrix_mult: out = in1 * in2 of one fixed size, 256 x 256 x 256, int8 values in 32-bit containers.
//
// Its registers (in1, in2, out_r; no sizes) are those of matrix multipliers that others have
// published for the PYNQ-Z2, so one driver serves both: products of other sizes are cut into tiles.
//
// | parameter   | value | why                                                               |
// |-------------|-------|-------------------------------------------------------------------|
// | SIZE        | 256   | 64 KB of in2 on chip, 29 BRAM36 in words of 256 bytes             |
// | WIDTH       | 256   | 256 MAC a cycle keep up with one container a cycle on the port;   |
// |             |       | two products a DSP48E1, 128 of the 220                            |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed        |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS             |
#pragma once
#include <cstdint>

namespace matrix_mult_config {
constexpr int WIDTH = 256;
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int ELEMENTS = 256 * 256;  // behind each pointer
}  // namespace matrix_mult_config

// in1, in2, out: 256 rows of 256, one after the other. Of the inputs only the low byte counts. out
// may not overlap an input.
void matrix_mult(const int32_t* in1, const int32_t* in2, int32_t* out);
