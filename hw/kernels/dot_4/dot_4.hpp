// dot_4: c = a . b over float32 vectors of any length; the fourth rung: wide ports, partial sums.
//
// | parameter   | value | why                                                        |
// |-------------|-------|------------------------------------------------------------|
// | LANES       | 2     | 64 bits, the width of an HP port, hold two float32         |
// | PARTIALS    | 8     | sums in each lane; an addition takes 5 cycles              |
// | FIFO        | 32    | bridges what one step waits for another                    |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS      |
#pragma once

#include "hls_stream.h"
#include "hls_vector.h"

namespace dot_4_config {
constexpr int LANES = 2;
constexpr int PARTIALS = 8;
constexpr int FIFO = 32;
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 2048;  // words behind each pointer in co-simulation
using Word = hls::vector<float, LANES>;

static_assert(sizeof(Word) * 8 == 64, "an HP port moves 64 bits a beat");
}  // namespace dot_4_config

// a, b: n floats each; c: one float, the sum. a and b start on 8 bytes and are read in whole words:
// where n is odd, the float behind the last is read and ignored. n <= 0 gives 0.
void dot_4(const dot_4_config::Word* a, const dot_4_config::Word* b, float* c, int n);
