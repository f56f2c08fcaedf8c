// vadd_4: c = a + b over float32 vectors of any length; the fourth rung: wide ports.
//
// | parameter   | value | why                                                        |
// |-------------|-------|------------------------------------------------------------|
// | LANES       | 2     | 64 bits, the width of an HP port, hold two float32         |
// | FIFO        | 32    | bridges what one step waits for another                    |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS      |
#pragma once

#include "hls_stream.h"
#include "hls_vector.h"

namespace vadd_4_config {
constexpr int LANES = 2;
constexpr int FIFO = 32;
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 2048;  // words behind each pointer in co-simulation
using Word = hls::vector<float, LANES>;

static_assert(sizeof(Word) * 8 == 64, "an HP port moves 64 bits a beat");
}  // namespace vadd_4_config

// a, b: n floats each; c: n floats, may not overlap a or b. All start on 8 bytes, and are read and
// written in whole words: where n is odd, the float behind the last belongs to them too. n <= 0 does
// nothing.
void vadd_4(const vadd_4_config::Word* a, const vadd_4_config::Word* b, vadd_4_config::Word* c, int n);
