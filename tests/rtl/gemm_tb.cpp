// Bench of gemm: the HLS kernel's own checks (../../hw/kernels/gemm/gemm_tb_common.hpp) on the RTL, at odd
// addresses and with stalls; then products that go beyond panels and blocks, registers that change during a
// run, a reset in the middle, answers that are errors. With arguments "m n k mode latency": the cycles of one product.
#include "Vgemm.h"

#include "axi_lite.hpp"
#include "axi_memory.hpp"
#include "gemm.hpp"
#include "gemm_tb_common.hpp"

#ifndef BUS_BYTES
#define BUS_BYTES 8
#endif

static constexpr uint64_t BASE = 0x10000000;
static constexpr unsigned AP_START = 1, AP_DONE = 2, AP_IDLE = 4, STATUS = 0x78;

// The sizes of the RTL's blocks under the names of the HLS kernel's.
struct Shape {
#ifdef SMALL  // an array of 4 x 8, panels of 16 x 32 and 32 x 16
    static constexpr int DEPTH = 4, WIDTH = 8, TILE_M = 16, TILE_N = 16, TILE_K = 32;
#else
    static constexpr int DEPTH = 16, WIDTH = 32, TILE_M = 128, TILE_N = 128, TILE_K = 256;
#endif
};

struct Gemm : Bench<Vgemm> {
    Memory memory{BASE, std::vector<uint8_t>(24 << 20)};
    Random random{11};
    ReadPort a{memory, BUS_BYTES, top->m_axi_gmem0_ARVALID, top->m_axi_gmem0_ARREADY, top->m_axi_gmem0_ARADDR,
               top->m_axi_gmem0_ARLEN, top->m_axi_gmem0_ARSIZE, top->m_axi_gmem0_ARBURST,
               top->m_axi_gmem0_RVALID, top->m_axi_gmem0_RREADY, &top->m_axi_gmem0_RDATA, top->m_axi_gmem0_RLAST};
    ReadPort b{memory, BUS_BYTES, top->m_axi_gmem1_ARVALID, top->m_axi_gmem1_ARREADY, top->m_axi_gmem1_ARADDR,
               top->m_axi_gmem1_ARLEN, top->m_axi_gmem1_ARSIZE, top->m_axi_gmem1_ARBURST,
               top->m_axi_gmem1_RVALID, top->m_axi_gmem1_RREADY, &top->m_axi_gmem1_RDATA, top->m_axi_gmem1_RLAST};
    ReadPort columns{memory, BUS_BYTES, top->m_axi_gmem2_ARVALID, top->m_axi_gmem2_ARREADY, top->m_axi_gmem2_ARADDR,
                     top->m_axi_gmem2_ARLEN, top->m_axi_gmem2_ARSIZE, top->m_axi_gmem2_ARBURST,
                     top->m_axi_gmem2_RVALID, top->m_axi_gmem2_RREADY, &top->m_axi_gmem2_RDATA,
                     top->m_axi_gmem2_RLAST};
    WritePort c{memory, BUS_BYTES, top->m_axi_gmem2_AWVALID, top->m_axi_gmem2_AWREADY, top->m_axi_gmem2_AWADDR,
                top->m_axi_gmem2_AWLEN, top->m_axi_gmem2_AWSIZE, top->m_axi_gmem2_AWBURST,
                top->m_axi_gmem2_WVALID, top->m_axi_gmem2_WREADY, &top->m_axi_gmem2_WDATA,
                &top->m_axi_gmem2_WSTRB, top->m_axi_gmem2_WLAST, top->m_axi_gmem2_BVALID, top->m_axi_gmem2_BREADY};
    Lite lite{lite_of(*top), random, [this] { tick(); }};

    Gemm() {
        clock = &top->ap_clk;
        top->m_axi_gmem0_RRESP = top->m_axi_gmem1_RRESP = top->m_axi_gmem2_RRESP = top->m_axi_gmem2_BRESP = 0;
        restart();
    }
    void restart() {
        a.clear();
        b.clear();
        c.clear();
        columns.clear();
        reset(top->ap_rst_n);
    }
    void tick() {
        a.drive(cycle, random);
        b.drive(cycle, random);
        columns.drive(cycle, random);
        c.drive(cycle, random);
        low();
        lite.settled();
        a.sample(cycle);
        b.sample(cycle);
        columns.sample(cycle);
        c.sample(cycle);
        high();
        a.after();
        b.after();
        columns.after();
        c.after();
    }
    void set(double stalls, unsigned latency) {
        a.stalls = b.stalls = c.stalls = columns.stalls = lite.stalls = stalls;
        a.latency = b.latency = c.latency = columns.latency = latency;
    }
    void pointer(unsigned offset, uint64_t address) {
        lite.write(offset, uint32_t(address));
        lite.write(offset + 4, uint32_t(address >> 32));
    }
    void sizes(int m, int n, int k, int lda, int ldb, int ldc, int mode) {
        const int values[] = {m, n, k, lda, ldb, ldc};
        for (unsigned i = 0; i < 6; ++i) lite.write(0x34 + 8 * i, uint32_t(values[i]));
        lite.write(0x7c, uint32_t(mode));
    }
    uint64_t wait(uint64_t bound) {
        const uint64_t from = cycle;
        while (!(lite.read(0) & AP_DONE)) CHECK(cycle - from < bound, "not done after %llu cycles", (unsigned long long)bound);
        return cycle - from;
    }
};

static constexpr uint64_t PLACES[] = {BASE, BASE + 0x300000, BASE + 0x600000, BASE + 0x1400000, BASE + 0x1500000};
static uint64_t places[5];

// Where the operands of the next run lie: anywhere, c, bias and scale on words.
static void place(Gemm& bench) {
    for (int i = 0; i < 5; ++i) places[i] = PLACES[i] + (i < 2 ? bench.random.below(300) : 4 * bench.random.below(70));
    const unsigned registers[] = {0x10, 0x1c, 0x28, 0x64, 0x70};
    for (int i = 0; i < 5; ++i) bench.pointer(registers[i], places[i]);
}

static double stalls[] = {0, 0.3, 0.05};
static unsigned runs = 0;

int main(int count, char** arguments) {
    Gemm bench;
    CHECK(bench.lite.read(0) == AP_IDLE, "AP_CTRL after reset");
    if (count > 5) {
        const int m = std::atoi(arguments[1]), n = std::atoi(arguments[2]), k = std::atoi(arguments[3]);
        const int mode = std::atoi(arguments[4]);
        bench.set(0, std::atoi(arguments[5]));
        for (int i = 0; i < 5; ++i) bench.pointer(i < 3 ? 0x10 + 12 * i : 0x64 + 12 * (i - 3), PLACES[i]);
        bench.sizes(m, n, k, k, n, n, mode);
        bench.lite.write(0, AP_START);
        const uint64_t cycles = bench.wait(1000000000);
        std::printf("%llu cycles, %.1f MAC a cycle\n", (unsigned long long)cycles, double(m) * n * k / cycles);
        return 0;
    }

    size_t depth = 1 << 18, columns = gemm_config::COSIM_COLUMNS;
    auto kernel = [&](int8_t* a, int8_t* b, int32_t* c, int m, int n, int k, int lda, int ldb, int ldc, int32_t* bias,
                      float* scale, int mode) {
        place(bench);
        bench.set(stalls[runs % 3], 1 + bench.random.below(60));
        ++runs;
        const void* from[] = {a, b, c, bias, scale};
        const size_t nbytes[] = {depth, depth, 4 * depth, 4 * columns, 4 * columns};
        for (int i = 0; i < 5; ++i) std::memcpy(bench.memory.at(places[i], nbytes[i]), from[i], nbytes[i]);
        bench.sizes(m, n, k, lda, ldb, ldc, mode);
        bench.lite.write(0, AP_START);
        bench.wait(20000 + 4ll * m * n + 4ll * (m + n) * k + 1ll * m * n * k / 50);
        std::memcpy(c, bench.memory.at(places[2], 4 * depth), 4 * depth);
    };
    int errors = gemm_tb::check_all<Shape>("gemm", kernel, depth, columns);

    // Beyond panels and blocks: the parts that k is cut into, blocks forwards and backwards, a long run.
    const gemm_tb::Size sizes[] = {
#ifdef SMALL
        {20, 35, 65, 66, 36, 36}, {18, 5, 100, 101, 7, 8}, {33, 50, 17, 18, 60, 61}, {5, 17, 97, 98, 18, 20},
#else
        {150, 270, 513, 520, 272, 276}, {140, 33, 300, 301, 33, 40},  {5, 9, 1000, 1001, 11, 12},
        {260, 140, 384, 384, 140, 140}, {130, 390, 130, 131, 400, 401}, {33, 129, 769, 770, 130, 132},
#endif
    };
    for (const gemm_tb::Size& size : sizes) {
        for (const int mode : {0, 1 | 4, 2 | 4 | 8}) errors += gemm_tb::check("gemm", kernel, size, depth, columns, mode, false);
    }

    // The largest sum and the lowest one of a panel: they take all of the array's bits.
    for (const int weight : {-128, 127}) {
        const int m = 5, n = 9, k = 512;
        std::vector<int8_t> a(depth, -128), b(depth, int8_t(weight));
        std::vector<int32_t> c(depth), bias(columns);
        std::vector<float> scale(columns);
        kernel(a.data(), b.data(), c.data(), m, n, k, k, n, n, bias.data(), scale.data(), 0);
        for (int i = 0; i < m * n; ++i) CHECK(c[i] == k * -128 * weight, "%d products of -128 and %d: %d", k, weight, c[i]);
    }

    // A reset in the middle of everything, and a product behind it.
    for (unsigned i = 0; i < 6; ++i) {
        place(bench);
        bench.set(i % 2 ? 0.2 : 0, 20);
        bench.sizes(300, 200, 300, 300, 200, 200, 2 | 4);
        bench.lite.write(0, AP_START);
        for (unsigned left = 300 + 3000 * i; left > 0; --left) bench.tick();
        bench.restart();
        CHECK(bench.lite.read(0) == AP_IDLE, "AP_CTRL after a reset in the middle");
        errors += gemm_tb::check("gemm", kernel, {40, 50, 60, 60, 50, 50}, depth, columns, 2 | 4, false);
    }

    // Answers: the first one of each channel that is an error, of this run only.
    auto status_of_run = [&] {
        errors += gemm_tb::check("gemm", kernel, {20, 9, 17, 17, 9, 9}, depth, columns, 2 | 4, false);
        return bench.lite.read(STATUS);
    };
    CData* const answers[] = {&bench.top->m_axi_gmem0_RRESP, &bench.top->m_axi_gmem1_RRESP,
                              &bench.top->m_axi_gmem2_RRESP, &bench.top->m_axi_gmem2_BRESP};
    for (unsigned channel = 0; channel < 4; ++channel) {
        for (const unsigned answer : {1u, 2u, 3u}) {
            *answers[channel] = answer;
            const uint32_t status = status_of_run(), expected = answer == 1 ? 0 : answer << 2 * channel;
            *answers[channel] = 0;
            CHECK(status == expected, "channel %u answers %u: 0x%x, expected 0x%x", channel, answer, status, expected);
        }
    }
    const uint32_t status = status_of_run();
    CHECK(status == 0, "the answers of a run before: 0x%x", status);
    CHECK(bench.top->m_axi_gmem0_ARCACHE == 3 && bench.top->m_axi_gmem1_ARCACHE == 3
              && bench.top->m_axi_gmem2_ARCACHE == 3 && bench.top->m_axi_gmem2_AWCACHE == 3,
          "AxCACHE is not that of HLS");
    CHECK((bench.top->m_axi_gmem0_ARPROT | bench.top->m_axi_gmem1_ARPROT | bench.top->m_axi_gmem2_ARPROT
           | bench.top->m_axi_gmem2_AWPROT) == 0, "AxPROT is not that of HLS");
    std::printf("%llu cycles, %d errors\n%s\n", (unsigned long long)bench.cycle, errors, errors ? "FAIL" : "PASS");
    return errors != 0;
}
