// Testbench of move_32: rows shorter and longer than a tile, blocks that do not fit, an index of 64 bits.
#include "move_32.hpp"
#include "../../include/cosim.hpp"

#include <cstdio>
#include <cstring>
#include <vector>

using T = move_32_config::Table;
static_assert(T::COPY == 0 && T::TRANSPOSE == 1 && T::GATHER == 2 && T::SCATTER_ADD == 3, "the numbers that the driver writes");
static constexpr int GUARD = -12345;

struct Run {
    const char* name;
    int op, n[4], s[4], x[4], d[4], step, skip;
};

static float real(int bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

static int bits(float value) {
    int word;
    std::memcpy(&word, &value, sizeof word);
    return word;
}

// The same loops without tiles.
static void golden(const Run& r, const std::vector<int>& src, const std::vector<int>& index, std::vector<int>& dst) {
    for (int a = 0; a < r.n[0]; ++a)
        for (int b = 0; b < r.n[1]; ++b)
            for (int c = 0; c < r.n[2]; ++c)
                for (int e = 0; e < r.n[3]; ++e) {
                    const int from = a * r.s[0] + b * r.s[1] + c * r.s[2] + e * r.s[3];
                    const int to = a * r.d[0] + b * r.d[1] + c * r.d[2] + e * r.d[3];
                    const int chosen = index[a * r.x[0] + b * r.x[1] + c * r.x[2] + e * r.x[3]];
                    if (r.op == T::GATHER) {
                        dst[to] = src[from + chosen * r.step];
                    } else if (r.op != T::SCATTER_ADD) {
                        dst[to] = src[from];
                    } else if (chosen != r.skip) {
                        int& target = dst[to + chosen * r.step];
                        target = bits(real(target) + real(src[from]));
                    }
                }
}

static int check(const Run& r) {
    const int size = 1 << 14;
    std::vector<int> src(size), index(size), found(size, GUARD), expected;
    cosim::deepen(move_32_config::COSIM_DEPTH, src, index, found);
    for (int i = 0; i < size; ++i) {
        src[i] = bits(0.37f * static_cast<float>(i % 1009) - 11.0f);
        index[i] = i % 2 ? -1 : (i / 2 * 7) % 5;  // the high words must not be looked at
    }
    if (r.op == T::SCATTER_ADD) found.assign(size, 0);
    expected = found;
    golden(r, src, index, expected);
    move_32(src.data(), index.data(), found.data(), r.op, r.n[0], r.n[1], r.n[2], r.n[3], r.s[0], r.s[1], r.s[2], r.s[3],
            r.x[0], r.x[1], r.x[2], r.x[3], r.d[0], r.d[1], r.d[2], r.d[3], r.step, r.skip);

    int errors = 0;
    for (int i = 0; i < size; ++i) {
        if (found[i] != expected[i] && errors++ == 0) {
            std::printf("  first wrong index %d: %08x, expected %08x\n", i, found[i], expected[i]);
        }
    }
    std::printf("move_32 %-34s %s\n", r.name, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    const Run runs[] = {
        {"one row, longer than a tile", T::COPY, {1, 1, 1, 3001}, {0, 0, 0, 1}, {}, {0, 0, 0, 1}, 0, 0},
        {"one row, a word longer than a tile", T::COPY, {1, 1, 1, T::TILE + 1}, {0, 0, 0, 1}, {}, {0, 0, 0, 1}, 0, 0},
        {"every other word, rows apart", T::COPY, {2, 3, 5, 7}, {900, 300, 20, 2}, {}, {400, 100, 9, 1}, 0, 0},
        {"into every third word", T::COPY, {1, 2, 3, 1030}, {0, 3090, 1030, 1}, {}, {0, 1, 3500, 3}, 0, 0},
        {"rows that overlap at the source", T::COPY, {1, 1, 5, 40}, {0, 0, 3, 1}, {}, {0, 0, 40, 1}, 0, 0},
        {"no rows", T::COPY, {1, 1, 0, 40}, {0, 0, 100, 1}, {}, {0, 0, 40, 1}, 0, 0},
        {"transpose of one block", T::TRANSPOSE, {1, 1, 32, 32}, {0, 0, 1, 40}, {}, {0, 0, 32, 1}, 0, 0},
        {"transpose of a row more than a block", T::TRANSPOSE, {1, 1, T::BLOCK + 1, T::BLOCK}, {0, 0, 1, 40}, {}, {0, 0, 40, 1}, 0, 0},
        {"transpose of a column more", T::TRANSPOSE, {1, 1, T::BLOCK, T::BLOCK + 1}, {0, 0, 1, 40}, {}, {0, 0, 40, 1}, 0, 0},
        {"transpose of blocks that do not fit", T::TRANSPOSE, {2, 2, 45, 71}, {7000, 50, 1, 95}, {}, {6500, 3250, 71, 1}, 0, 0},
        {"transpose of more rows than columns", T::TRANSPOSE, {1, 1, 71, 37}, {0, 0, 1, 80}, {}, {0, 0, 40, 1}, 0, 0},
        {"gather of rows", T::GATHER, {1, 1, 20, 37}, {0, 0, 0, 1}, {0, 0, 2, 0}, {0, 0, 37, 1}, 37, 0},
        {"gather of long rows", T::GATHER, {1, 1, 4, 1500}, {0, 0, 0, 2}, {0, 0, 2, 0}, {0, 0, 1500, 1}, 3000, 0},
        {"gather word by word", T::GATHER, {2, 3, 4, 50}, {600, 200, 50, 1}, {1200, 400, 100, 2}, {600, 200, 50, 1}, 800, 0},
        {"gather along a long row", T::GATHER, {1, 1, 2, 2100}, {0, 0, 6, 0}, {0, 0, 4200, 2}, {0, 0, 2100, 1}, 1, 0},
        {"scatter-add of rows", T::SCATTER_ADD, {1, 1, 30, 33}, {0, 0, 33, 1}, {0, 0, 2, 0}, {0, 0, 0, 1}, 33, -1},
        {"scatter-add, one index left out", T::SCATTER_ADD, {1, 1, 9, 1100}, {0, 0, 1100, 1}, {0, 0, 2, 0}, {0, 0, 0, 1}, 1100, 2},
        {"scatter-add of a row into one word", T::SCATTER_ADD, {1, 1, 3, 40}, {0, 0, 40, 1}, {0, 0, 2, 0}, {0, 0, 7, 0}, 1, -1},
        {"scatter-add word by word", T::SCATTER_ADD, {1, 1, 3, 40}, {0, 0, 40, 1}, {0, 0, 80, 2}, {0, 0, 5, 0}, 1, -1},
    };
    int errors = 0;
    for (const Run& r : runs) errors += check(r);
    return errors == 0 ? 0 : 1;
}
