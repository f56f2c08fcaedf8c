// Pointwise kernels: tiles, and the loops that operands are walked in.
//
// | parameter   | value | why                                                        |
// |-------------|-------|------------------------------------------------------------|
// | TILE        | 1024  | 4 KB a buffer, one BRAM36; long enough for 16-beat bursts  |
// | OUTSTANDING | 8     | DDR answers a burst after 37 cycles, 85 at worst: 6 needed |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS      |
#pragma once

namespace pointwise {
constexpr int TILE = 1024;
constexpr int OUTSTANDING = 8;
constexpr int BURST = 16;
constexpr int COSIM_DEPTH = 16384;  // elements behind each pointer in co-simulation

static_assert(TILE % BURST == 0, "a full tile is a whole number of bursts");

// Elements in each of four nested loops, the last one innermost, and how far an operand moves for
// each: 0 reads the same element again.
struct Sizes {
    int n0, n1, n2, n3;
};
struct Steps {
    int s0, s1, s2, s3;
};

inline int total_of(const Sizes& n) { return n.n0 * n.n1 * n.n2 * n.n3; }
inline int tiles_of(const Sizes& n) { return total_of(n) > 0 ? (total_of(n) - 1) / TILE + 1 : 0; }
// Elements in tile t.
inline int count_of(int t, const Sizes& n) {
    const int left = total_of(n) - t * TILE;
    return left < TILE ? left : TILE;
}
}  // namespace pointwise
