// Bench of gemm_lane against the HLS kernel's own epilogue (../../hw/kernels/gemm/gemm_epilogue.hpp): every
// mode, sums and biases of every size, floats of every kind, values that come with gaps.
#include "Vgemm_lane.h"

#include <cstring>
#include <deque>

#include "bench.hpp"
#include "gemm_epilogue.hpp"

static constexpr unsigned STEPS = 22, VALUES = 150000;

struct Cpu {
    static float times(float a, float b) { return a * b; }
    static float plus(float a, float b) { return a + b; }
};

static uint32_t expected(int32_t sum, int32_t bias, int32_t scale, int mode) {
    using namespace gemm_core;
    if ((mode & KIND) == INT8) return finish_int8<Cpu>(sum, bias, as_float(scale), mode);
    if ((mode & KIND) == FLOAT32) return uint32_t(finish_float32<Cpu>(sum, bias, as_float(scale), mode));
    return uint32_t(finish_int32(sum, bias, mode));
}

// Integers with few bits and with many.
static int32_t integer(Random& random) {
    return int32_t(random.bits()) >> random.below(32);
}

// Any bits; subnormal and special numbers; few bits of mantissa, for halves; near a product that is given.
static int32_t real(Random& random, float near) {
    static const uint32_t special[] = {0, 1, 2, 0x7fffff, 0x800000, 0x3f800000, 0x3f000000, 0x7f7fffff,
                                       0x7f800000, 0x7fc00000, 0x7f800001, 0x33800000, 0x4b000000};
    const uint32_t sign = random.bits() & 0x80000000u, bits = random.bits();
    switch (random.below(5)) {
    case 0: return int32_t(bits);
    case 1: return int32_t(sign | special[random.below(sizeof special / 4)]);
    case 2: return int32_t(sign | (bits & 0x7fffff) >> random.below(24));
    case 3: return int32_t(sign | (bits & 0x7fffffff & ~0u << random.below(24)));
    default: {
        uint32_t value;
        std::memcpy(&value, &near, 4);
        return int32_t((value ^ (bits & 0x1ff) ^ sign) + ((random.below(60) - 30) << 23));
    }
    }
}

static bool is_nan(uint32_t bits) {
    return (bits & 0x7fffffff) > 0x7f800000;
}

struct Lane : Bench<Vgemm_lane> {
    Random random{5};
    std::deque<uint32_t> waits;  // what should come out, a cycle each
    std::deque<bool> came;
    int mode = 0;
    uint64_t compared = 0;

    Lane() {
        clock = &top->clk_i;
        top->valid_i = 0;
    }
    void turn(bool valid) {
        const int32_t sum = integer(random);
        int32_t scale = real(random, 1.0f / float(sum ? sum : 1));  // about 1, or an int8
        const bool small = (mode & 3) == 1 && random.chance(0.5);
        if (small) {
            const float wanted = float(int32_t(random.below(600)) - 300) / 2;
            scale = gemm_core::as_bits(wanted / float(sum ? sum : 1));
        }
        const bool integers = (mode & 3) != 2;
        const int32_t bias = small ? 0 : integers ? integer(random) : real(random, float(sum) * gemm_core::as_float(scale));
        top->valid_i = valid;
        top->sum_i = uint32_t(sum), top->bias_i = uint32_t(bias), top->scale_i = uint32_t(scale);
        came.push_back(valid);
        waits.push_back(valid ? expected(sum, bias, scale, mode) : 0);
        step();
        if (came.size() < STEPS) return;
        if (came.front()) compare(waits.front());
        came.pop_front(), waits.pop_front();
    }
    void compare(uint32_t wanted) {
        top->eval();
        const uint32_t found = top->element_o;
        const bool same = found == wanted || ((mode & 3) == 2 && is_nan(found) && is_nan(wanted));
        CHECK(same, "mode %d: %08x, expected %08x (value %llu)", mode, found, wanted, (unsigned long long)compared);
        ++compared;
    }
};

int main() {
    Lane bench;
    for (const int kind : {0, 1, 2}) {
        for (const int flags : {0, 4, 8, 12}) {
            bench.mode = kind | flags;
            bench.top->kind_i = CData(kind);
            bench.top->with_bias_i = flags >> 2 & 1, bench.top->relu_i = flags >> 3;
            bench.turn(false);  // the lane takes the mode
            const double gaps = flags & 4 ? 0.3 : 0;
            for (unsigned i = 0; i < VALUES; ++i) bench.turn(!bench.random.chance(gaps));
            for (unsigned i = 0; i < STEPS; ++i) bench.turn(false);
        }
    }
    CHECK(bench.compared > 12 * VALUES / 2, "only %llu values", (unsigned long long)bench.compared);
    std::printf("%llu values\nPASS\n", (unsigned long long)bench.compared);
}
