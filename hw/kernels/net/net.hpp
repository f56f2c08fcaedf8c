// net: a whole int8 network in one run, from a program in memory (docs/net.md).
//
// | parameter   | value | why                                                                     |
// |-------------|-------|-------------------------------------------------------------------------|
// | OUTS        | 16    | output channels that one cell of the image is multiplied with in a cycle |
// | PIXELS      | 256   | sums of as many pixels of 16 channels stay on chip: 16 KB               |
// | PATCH       | 4096  | cells of a channel on chip; a window's row with its gaps fits           |
// | TAPS        | 1024  | columns of a window                                                     |
// | PORT_BITS   | 64    | as wide as an HP port; the RTL in rtl/ uses all of it                   |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed              |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS                   |
#pragma once
#include <cstdint>

namespace net_config {
constexpr int PORT_BITS = 64;
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 1 << 15;  // elements behind each pointer in co-simulation
}  // namespace net_config

// program: `instructions` of 32 words each. weights: int8. tables: int32 biases and float32 multipliers by their
// bits, in turn. arena: activations, the input and the output of the network among them. Nothing is read or written
// beyond weights_bytes, table_words and arena_bytes; an instruction that would is not begun.
//
// outcome: 8 + instructions words. [0] the reason why the run stopped, 0 at END; [1] the instruction at which it did;
// [2] the version; [3] to [7] are 0; [8 + i] the cycles of instruction i, 0 where they are not counted, as here.
void net(const uint32_t* program, const int8_t* weights, const int32_t* tables, int8_t* arena, uint32_t* outcome, int instructions,
         uint32_t weights_bytes, uint32_t table_words, uint32_t arena_bytes);
