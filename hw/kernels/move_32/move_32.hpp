// move_32: copies, transposes, gathers and scatter-adds of 32-bit words.
//
// | parameter   | value | why                                                             |
// |-------------|-------|-----------------------------------------------------------------|
// | TILE        | 1024  | words of a piece of a row: 4 KB a buffer, 64 bursts             |
// | BLOCK       | 32    | side of a square that is turned on the chip: two bursts a row   |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed      |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS           |
#pragma once
#include "../../include/move_index.hpp"

namespace move_32_config {
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 1 << 16;  // words behind each pointer in co-simulation

struct Table {
    static constexpr int TILE = 1024, BLOCK = 32;
    static constexpr int COPY = 0, TRANSPOSE = 1, GATHER = 2, SCATTER_ADD = 3;
};

static_assert(Table::TILE % BURST == 0 && Table::BLOCK % BURST == 0, "whole bursts");
}  // namespace move_32_config

// Sizes n, and the steps of source (s), index (x) and destination (d) in words, outermost loop first:
//   COPY         dst[d] = src[s]
//   TRANSPOSE    the same; the words of loop 2 lie in a row at the source, those of loop 3 at the destination
//   GATHER       dst[d] = src[s + step * index[x]]
//   SCATTER_ADD  dst[d + step * index[x]] += src[s] in float32, but where index[x] is skip
// Indices are not checked. src and dst may not overlap. A size of 0 or less does nothing.
void move_32(const int* src, const int* index, int* dst,
             int op, int n0, int n1, int n2, int n3, int s0, int s1, int s2, int s3,
             int x0, int x1, int x2, int x3, int d0, int d1, int d2, int d3, int step,
             int skip);
