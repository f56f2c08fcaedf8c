// Bench of f32_add and f32_mul against the CPU, bit for bit: every pair of special values, numbers of
// every distance of exponents, subnormals, ties; with stalls on both sides. Tags go along.
#include "Vf32_add.h"
#include "Vf32_mul.h"

#include <cstring>
#include <deque>
#include <vector>

#include "bench.hpp"

static float float_of(uint32_t bits) {
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

// The instruction itself, operands in this order: a compiler may swap them, and of two NaNs the first counts.
static uint32_t cpu_add(uint32_t a, uint32_t b) {
    float x = float_of(a);
    const float y = float_of(b);
#if defined(__SSE__)
    asm volatile("addss %1, %0" : "+x"(x) : "x"(y));
#else
    x = x + y;
#endif
    return bits_of(x);
}

static uint32_t cpu_mul(uint32_t a, uint32_t b) {
    float x = float_of(a);
    const float y = float_of(b);
#if defined(__SSE__)
    asm volatile("mulss %1, %0" : "+x"(x) : "x"(y));
#else
    x = x * y;
#endif
    return bits_of(x);
}

static const uint32_t SPECIAL[] = {
    0x00000000, 0x80000000, 0x00000001, 0x80000001, 0x00000002, 0x00000003, 0x007fffff, 0x807fffff,
    0x007ffffe, 0x00400000, 0x00800000, 0x80800000, 0x00800001, 0x00ffffff, 0x01000000, 0x01000001,
    0x0b800000, 0x1f800000, 0x1fffffff, 0x20000000, 0x33800000, 0x33800001, 0x34000000, 0x3effffff,
    0x3f000000, 0x3f000001, 0x3f7fffff, 0x3f800000, 0xbf800000, 0x3f800001, 0x3fffffff, 0x40000000,
    0x40490fdb, 0x4b000000, 0x4b7fffff, 0x4b800000, 0x4b800001, 0x5f800000, 0x7e800000, 0x7effffff,
    0x7f000000, 0x7f7fffff, 0xff7fffff, 0x7f7ffffe, 0x7f800000, 0xff800000, 0x7f800001, 0xff800001,
    0x7fc00000, 0xffc00000, 0x7fc12345, 0xffffffff, 0x7fa00000, 0x73000000, 0x72ffffff, 0x0c000000};

struct Pair {
    uint32_t a, b;
};

static std::vector<Pair> pairs(Random& random, int count) {
    std::vector<Pair> all;
    for (uint32_t a : SPECIAL) {
        for (uint32_t b : SPECIAL) all.push_back({a, b});
    }
    for (int i = 0; i < count; ++i) {
        Pair pair{random.bits(), random.bits()};
        const uint32_t sign = random.bits() & 0x80000000u;
        switch (random.below(9)) {
            case 0:
                break;  // any bits at all
            case 1:     // exponents near each other: cancellation
                pair.b = (pair.b & 0x807fffff) | (((pair.a >> 23 & 255) + random.below(5) - 2) & 255) << 23;
                break;
            case 2:
                pair.b = (pair.a + random.below(9) - 4) ^ sign;
                break;  // almost the same number
            case 3:     // subnormals, or almost
                pair.a &= 0x81ffffff;
                pair.b &= 0x81ffffff;
                break;
            case 4:  // products around the smallest normal number
                pair.b = (pair.b & 0x807fffff) | ((127 - (pair.a >> 23 & 255) + random.below(40) - 26) & 255)
                                                     << 23;
                break;
            case 5:  // products and sums around the largest
                pair.a |= 0x7f000000 & ~0x00800000;
                pair.b = (pair.b & 0x807fffff) | (126 + random.below(3)) << 23;
                break;
            case 6:  // few bits set: ties
                pair.a &= 0xff800000u | 0x7fffffu << random.below(24);
                pair.b &= 0xff800000u | 0x7fffffu << random.below(24);
                break;
            case 7: {  // products a little above half of the smallest number that is left
                const uint32_t exponent = 1 + random.below(100), down = 20 + random.below(7);
                pair.a = sign | exponent << 23 | random.below(8);
                pair.b = (127 - down - exponent) << 23 | (0x800000 - 1 - random.below(16));
                if (exponent + down > 127) pair.b = random.bits() & 0x7fffff;
                break;
            }
            default:  // exponents 20 to 30 apart: guard and sticky bits
                pair.b = (pair.b & 0x807fffff) | (((pair.a >> 23 & 255) + 20 + random.below(11)) & 255) << 23;
        }
        if (random.chance(0.05)) pair.a = SPECIAL[random.below(sizeof SPECIAL / 4)];
        if (random.chance(0.05)) pair.b = SPECIAL[random.below(sizeof SPECIAL / 4)];
        all.push_back(pair);
    }
    return all;
}

template <class Model, class Result, class Expected>
static void check(const char* name, Result result, Expected expected, const std::vector<Pair>& all,
                  double stalls) {
    Bench<Model> bench;
    Random random(3);
    Model& top = *bench.top;
    bench.clock = &top.clk_i;
    top.valid_i = top.ready_i = 0;
    bench.reset(top.rst_ni);
    size_t sent = 0, received = 0;
    uint64_t last = 0;
    while (received < all.size()) {
        if (!top.valid_i && sent < all.size() && !random.chance(stalls)) {
            top.valid_i = 1;
            top.a_i = all[sent].a;
            top.b_i = all[sent].b;
            top.tag_i = sent & 0x1ff;
        }
        top.ready_i = !random.chance(stalls);
        bench.low();
        if (top.valid_o && top.ready_i) {
            const Pair& pair = all[received];
            const uint32_t wanted = expected(pair.a, pair.b);
            CHECK(result(top) == wanted, "%s %08x, %08x gives %08x, expected %08x", name, pair.a, pair.b,
                  result(top), wanted);
            CHECK(top.tag_o == (received & 0x1ff), "%s: tag %u beside result %zu", name, top.tag_o, received);
            ++received;
            last = bench.cycle;
        }
        CHECK(bench.cycle - last < 1000, "%s: no result for 1000 cycles", name);
        const bool taken = top.valid_i && top.ready_o;
        bench.high();
        if (taken) {
            ++sent;
            top.valid_i = 0;
        }
    }
    if (stalls == 0)
        CHECK(bench.cycle < all.size() + 20, "%s: %llu cycles for %zu", name, (unsigned long long)bench.cycle,
              all.size());
    std::printf("%s: %zu pairs, stalls %g\n", name, all.size(), stalls);
}

int main() {
    Random random(1);
    for (double stalls : {0.0, 0.3}) {
        const auto all = pairs(random, stalls == 0 ? 1500000 : 100000);
        check<Vf32_add>("f32_add", [](Vf32_add& top) { return top.sum_o; }, cpu_add, all, stalls);
        check<Vf32_mul>("f32_mul", [](Vf32_mul& top) { return top.product_o; }, cpu_mul, all, stalls);
    }
    std::printf("PASS\n");
    return 0;
}
