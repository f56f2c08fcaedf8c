// Bench of vadd: lengths around bursts and beyond 4 KB, every kind of stall, starts back to back,
// auto-restart, a reset in the middle, answers that are errors, and the cycles of a long run.
#include "Vvadd.h"

#include "axi_lite.hpp"
#include "axi_memory.hpp"

static constexpr uint64_t BASE = 0x10000000;
static constexpr unsigned AP_START = 1, AP_DONE = 2, AP_IDLE = 4, AP_READY = 8, AUTO_RESTART = 0x80, STATUS = 0x3c;

struct Vadd : Bench<Vvadd> {
    Memory memory{BASE, std::vector<uint8_t>(8 << 20)};
    Random random{7};
    ReadPort a{memory,
               4,
               top->m_axi_gmem0_ARVALID,
               top->m_axi_gmem0_ARREADY,
               top->m_axi_gmem0_ARADDR,
               top->m_axi_gmem0_ARLEN,
               top->m_axi_gmem0_ARSIZE,
               top->m_axi_gmem0_ARBURST,
               top->m_axi_gmem0_RVALID,
               top->m_axi_gmem0_RREADY,
               &top->m_axi_gmem0_RDATA,
               top->m_axi_gmem0_RLAST};
    ReadPort b{memory,
               4,
               top->m_axi_gmem1_ARVALID,
               top->m_axi_gmem1_ARREADY,
               top->m_axi_gmem1_ARADDR,
               top->m_axi_gmem1_ARLEN,
               top->m_axi_gmem1_ARSIZE,
               top->m_axi_gmem1_ARBURST,
               top->m_axi_gmem1_RVALID,
               top->m_axi_gmem1_RREADY,
               &top->m_axi_gmem1_RDATA,
               top->m_axi_gmem1_RLAST};
    WritePort c{memory,
                4,
                top->m_axi_gmem2_AWVALID,
                top->m_axi_gmem2_AWREADY,
                top->m_axi_gmem2_AWADDR,
                top->m_axi_gmem2_AWLEN,
                top->m_axi_gmem2_AWSIZE,
                top->m_axi_gmem2_AWBURST,
                top->m_axi_gmem2_WVALID,
                top->m_axi_gmem2_WREADY,
                &top->m_axi_gmem2_WDATA,
                &top->m_axi_gmem2_WSTRB,
                top->m_axi_gmem2_WLAST,
                top->m_axi_gmem2_BVALID,
                top->m_axi_gmem2_BREADY};
    Lite lite{lite_of(*top), random, [this] { tick(); }};

    Vadd() {
        clock = &top->ap_clk;
        top->m_axi_gmem0_RRESP = top->m_axi_gmem1_RRESP = top->m_axi_gmem2_BRESP = 0;
        restart();
    }
    void restart() {
        a.clear();
        b.clear();
        c.clear();
        reset(top->ap_rst_n);
    }
    void tick() {
        a.drive(cycle, random);
        b.drive(cycle, random);
        c.drive(cycle, random);
        low();
        lite.settled();
        a.sample(cycle);
        b.sample(cycle);
        c.sample(cycle);
        high();
        a.after();
        b.after();
        c.after();
    }
    void set(double stalls, unsigned latency) {
        a.stalls = b.stalls = c.stalls = lite.stalls = stalls;
        a.latency = b.latency = c.latency = latency;
    }
    void arguments(uint64_t at_a, uint64_t at_b, uint64_t at_c, int n) {
        const uint64_t pointers[] = {at_a, at_b, at_c};
        for (int i = 0; i < 3; ++i) {
            lite.write(0x10 + 12 * i, uint32_t(pointers[i]));
            lite.write(0x14 + 12 * i, uint32_t(pointers[i] >> 32));
        }
        lite.write(0x34, uint32_t(n));
    }
    float* floats(uint64_t address) { return reinterpret_cast<float*>(memory.at(address, 4)); }
    void fill() {
        for (size_t i = 0; i < memory.bytes.size(); i += 4)
            *floats(BASE + i) = float(int(random.bits())) / 65536.0f;
    }
    uint64_t wait(uint64_t bound) {
        const uint64_t from = cycle;
        while (!(lite.read(0) & AP_DONE))
            CHECK(cycle - from < bound, "not done after %llu cycles", (unsigned long long)bound);
        return cycle - from;
    }
};

static void run(Vadd& bench, int n, unsigned shift, double stalls, unsigned latency) {
    const uint64_t at_a = BASE + 4 * shift, at_b = BASE + 0x200000 + 4 * ((shift * 5) % 31),
                   at_c = BASE + 0x400000 + 4 * ((shift * 11) % 37) + 64;
    const int count = n < 0 ? 0 : n;
    bench.set(stalls, latency);
    bench.arguments(at_a, at_b, at_c, n);
    for (int i = -16; i < count + 16; ++i) bench.floats(at_c)[i] = -12345.0f;
    bench.lite.write(0, AP_START);
    bench.wait(200 + uint64_t(count) * 20 + 20 * latency);
    for (int i = -16; i < count + 16; ++i) {
        const float expected =
            i < 0 || i >= count ? -12345.0f : bench.floats(at_a)[i] + bench.floats(at_b)[i];
        CHECK(bench.floats(at_c)[i] == expected, "n=%d c[%d] is %g, expected %g", n, i, bench.floats(at_c)[i],
              expected);
    }
    CHECK(bench.lite.read(0) == AP_IDLE, "AP_CTRL is not idle alone after done was read");
}

int main() {
    Vadd bench;
    bench.fill();
    CHECK(bench.lite.read(0) == AP_IDLE, "AP_CTRL after reset");
    for (int n : {0, -1, 1, 2, 15, 16, 17, 31, 64, 1023, 1024, 1025, 3000}) {
        for (double stalls : {0.0, 0.1, 0.6})
            run(bench, n, bench.random.below(1100), stalls, 1 + bench.random.below(60));
    }
    for (int i = 0; i < 60; ++i)
        run(bench, bench.random.below(200), bench.random.below(1100), 0.3, 1 + bench.random.below(60));
    CHECK(bench.a.max_outstanding <= 8 && bench.a.max_outstanding > 6, "%u reads on the way",
          bench.a.max_outstanding);

    // Registers: 64 bits, holes, done and ready together, the interrupt.
    bench.set(0, 40);
    bench.arguments(BASE, BASE + 0x200000, BASE + 0x400000, 100);
    CHECK(bench.lite.read(0x10) == BASE && bench.lite.read(0x34) == 100, "arguments do not read back");
    bench.lite.write(0x18, 77);
    CHECK(bench.lite.read(0x18) == 0, "a hole keeps a value");
    bench.lite.write(4, 1);
    bench.lite.write(8, 3);
    bench.lite.write(0, AP_START);
    CHECK(bench.lite.read(0) == AP_START, "AP_CTRL while it runs");
    for (int i = 0; i < 400 && !bench.top->__SYM__interrupt; ++i) bench.tick();
    CHECK(bench.top->__SYM__interrupt, "no interrupt");
    CHECK(bench.lite.read(12) == 3, "ISR");
    CHECK(bench.lite.read(0) == (AP_DONE | AP_READY | AP_IDLE | 0x200), "AP_CTRL when done");
    bench.lite.write(12, 3);
    CHECK(bench.lite.read(12) == 0 && bench.lite.read(0) == AP_IDLE,
          "ISR does not toggle, or done is not cleared");

    // Auto-restart: it sees what was written meanwhile, and stops after its bit is gone.
    bench.lite.write(0, AP_START | AUTO_RESTART);
    bench.wait(1000);
    *bench.floats(BASE) = 5;
    *bench.floats(BASE + 0x200000) = 6;
    for (int i = 0; i < 3; ++i) bench.wait(1000);
    CHECK(*bench.floats(BASE + 0x400000) == 11, "auto-restart did not run again");
    bench.lite.write(0, 0);
    for (int i = 0; i < 1000; ++i) bench.tick();
    CHECK((bench.lite.read(0) & ~(AP_DONE | AP_READY | 0x200u)) == AP_IDLE, "auto-restart does not end");

    // A reset in the middle drops everything.
    bench.lite.write(0x34, 3000);
    bench.lite.write(0, AP_START);
    for (int i = 0; i < 500; ++i) bench.tick();
    bench.restart();
    CHECK(bench.lite.read(0) == AP_IDLE && bench.lite.read(0x34) == 0, "a reset leaves something behind");
    run(bench, 1000, 3, 0.2, 20);

    // Answers: the first one of each channel that is an error, of this run only.
    CHECK(bench.lite.read(STATUS) == 0, "OKAY leaves 0x%x", bench.lite.read(STATUS));
    CData* const answers[] = {&bench.top->m_axi_gmem0_RRESP, &bench.top->m_axi_gmem1_RRESP,
                              &bench.top->m_axi_gmem2_BRESP};
    for (unsigned channel = 0; channel < 3; ++channel) {
        for (unsigned answer : {1u, 2u, 3u}) {
            *answers[channel] = answer;
            run(bench, 100, 0, 0.2, 20);
            *answers[channel] = 0;
            const uint32_t expected = answer == 1 ? 0 : answer << 2 * channel, status = bench.lite.read(STATUS);
            CHECK(status == expected, "channel %u answers %u: 0x%x, expected 0x%x", channel, answer, status,
                  expected);
        }
    }
    run(bench, 100, 0, 0.2, 20);
    CHECK(bench.lite.read(STATUS) == 0, "the answers of a run before: 0x%x", bench.lite.read(STATUS));
    bench.arguments(BASE, BASE + 0x200000, BASE + 0x400000, 300);
    bench.lite.write(0, AP_START);
    bench.top->m_axi_gmem0_RRESP = 3;
    for (int i = 0; i < 60; ++i) bench.tick();
    bench.top->m_axi_gmem0_RRESP = 2;
    bench.wait(20000);
    bench.top->m_axi_gmem0_RRESP = 0;
    CHECK(bench.lite.read(STATUS) == 3, "of DECERR and SLVERR: 0x%x, expected the first",
          bench.lite.read(STATUS));
    CHECK(bench.top->m_axi_gmem0_ARCACHE == 3 && bench.top->m_axi_gmem1_ARCACHE == 3
              && bench.top->m_axi_gmem2_AWCACHE == 3 && bench.top->m_axi_gmem0_ARPROT == 0
              && bench.top->m_axi_gmem1_ARPROT == 0 && bench.top->m_axi_gmem2_AWPROT == 0,
          "AxCACHE or AxPROT are not those of HLS");

    // Speed: an element a cycle.
    const int n = 100000;
    bench.set(0, 40);
    bench.arguments(BASE, BASE + 0x200000, BASE + 0x400000, n);
    bench.lite.write(0, AP_START);
    const uint64_t cycles = bench.wait(2 * n);
    CHECK(cycles < n + 150, "%llu cycles for %d elements", (unsigned long long)cycles, n);
    std::printf("vadd n=%d: %llu cycles\nPASS\n", n, (unsigned long long)cycles);
    return 0;
}
