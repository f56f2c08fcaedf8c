// Bench of the generated top of overlay gemm: products with a bias, started over GP0. The kernel's ports
// have 64 bits, any byte address, and one of them reads and writes.
//
//   bench RUNS
#include "zynq.hpp"

static constexpr uint32_t BIAS = 4;  // int32 sums, with a bias added

static void product(Zynq& bench, int m, int n, int k) {
    Random& random = bench.random;
    const int lda = k + random.below(5), ldb = n + random.below(5), ldc = n + random.below(3);
    const uint32_t a = DDR + random.below(99), b = DDR + ROOM + random.below(99), bias = DDR + ROOM / 2,
                   c = DDR + 2 * ROOM + 64 + 4 * random.below(32);
    const auto word = [&](uint32_t at) { return reinterpret_cast<int32_t*>(bench.memory.at(at, 4)); };
    const auto byte = [&](uint32_t at) { return int32_t(int8_t(*bench.memory.at(at, 1))); };
    for (uint32_t i = 0; i < uint32_t(m * ldc) + 32; ++i) *word(c - 64 + 4 * i) = -12345;
    bench.gp.write(REGISTERS + 0x10, {a, 0, 0, b, 0, 0, c, 0, 0, uint32_t(m), 0, uint32_t(n), 0, uint32_t(k)});
    bench.gp.write(REGISTERS + 0x4c, {uint32_t(lda), 0, uint32_t(ldb), 0, uint32_t(ldc), 0, bias, 0});
    bench.gp.write(REGISTERS + 0x7c, {BIAS});
    bench.gp.write(REGISTERS, {AP_START});
    for (int i = 0; !(bench.gp.read(REGISTERS) & AP_DONE); ++i) CHECK(i < 20000, "m=%d n=%d k=%d: not done", m, n, k);
    CHECK(bench.gp.read(REGISTERS + 0x78) == 0, "an answer that is no OKAY");
    for (int i = -16; i < m * ldc + 16; ++i) {
        int32_t want = -12345;
        if (i >= 0 && i < m * ldc && i % ldc < n) {
            want = *word(bias + 4 * (i % ldc));
            for (int x = 0; x < k; ++x) want += byte(a + i / ldc * lda + x) * byte(b + x * ldb + i % ldc);
        }
        CHECK(*word(c + 4 * i) == want, "m=%d n=%d k=%d: c[%d] is %d, expected %d", m, n, k, i, *word(c + 4 * i), want);
    }
}

int main(int argc, char** argv) {
    const int count = argc > 1 ? std::atoi(argv[1]) : 10;
    Zynq bench;
    for (uint8_t& byte : bench.memory.bytes) byte = uint8_t(bench.random.bits());
    long elements = 0;
    for (int i = 0; i < count; ++i) {
        bench.set(0.1 * bench.random.below(6), 1 + bench.random.below(60));
        const int m = 1 + bench.random.below(40), n = 1 + bench.random.below(40), k = 1 + bench.random.below(70);
        product(bench, m, n, k);
        elements += long(m) * n;
    }
    std::printf("%d runs, %ld elements equal\nPASS\n", count, elements);
}
