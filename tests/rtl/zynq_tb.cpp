// Bench of a generated top whose UNITS compute units are all vadd, with an interrupt controller behind
// them: every run is started over GP0 and read in the memory behind PORTS HP ports.
//
//   bench RUNS
#include "zynq.hpp"

struct Run {
    uint32_t unit, n, a, b, c;

    Run(uint32_t which, uint32_t count, Random& random) : unit(which), n(count) {
        a = DDR + (3 * unit) * ROOM + 4 * random.below(2048);
        b = DDR + (3 * unit + 1) * ROOM + 4 * random.below(2048);
        c = DDR + (3 * unit + 2) * ROOM + 64 + 4 * random.below(2048);
    }
    uint32_t at(uint32_t offset) const { return REGISTERS + unit * PAGE + offset; }
    void begin(Zynq& bench) const {
        for (int i = -16; i < int(n) + 16; ++i) *bench.floats(c + 4 * i) = -12345.0f;
        bench.gp.write(at(0x10), {a, 0});
        bench.gp.write(at(0x1c), {b, 0, 0, c, 0});
        bench.gp.write(at(0x34), {n});
        bench.gp.write(at(4), {1, 1});
        bench.gp.write(at(0), {AP_START});
    }
    void check(Zynq& bench) const {
        for (int i = -16; i < int(n) + 16; ++i) {
            const bool inside = i >= 0 && i < int(n);
            const float want = inside ? *bench.floats(a + 4 * i) + *bench.floats(b + 4 * i) : -12345.0f,
                        found = *bench.floats(c + 4 * i);
            CHECK(std::memcmp(&want, &found, 4) == 0, "unit %u, n=%u: c[%d] is %g, expected %g", unit, n, i,
                  found, want);
        }
    }
};

// All units at once; each is known to have ended by its interrupt.
static uint64_t together(Zynq& bench) {
    static const uint32_t counts[] = {1, 2, 15, 16, 17, 33, 257, 1025};
    std::vector<Run> runs;
    for (uint32_t unit = 0; unit < UNITS; ++unit)
        runs.emplace_back(unit, bench.random.chance(0.5) ? counts[bench.random.below(8)] : bench.random.below(300),
                          bench.random);
    uint64_t elements = 0;
    for (const Run& run : runs) run.begin(bench);
    for (uint32_t left = (1u << UNITS) - 1; left;) {
        for (int i = 0; !(bench.interrupts() & 1); ++i) {
            CHECK(i < 100000, "no interrupt, units 0x%x are left", left);
            bench.tick();
        }
        const uint32_t pending = bench.gp.read(INTC + 4);
        CHECK(pending && !(pending & ~left), "IPR is 0x%x, units 0x%x are left", pending, left);
        for (const Run& run : runs) {
            if (!(pending >> run.unit & 1)) continue;
            CHECK(bench.gp.read(run.at(0)) & AP_DONE, "unit %u interrupts and is not done", run.unit);
            bench.gp.write(run.at(12), {1});
            CHECK((bench.gp.read(run.at(0)) & ~8u) == AP_IDLE, "unit %u is not idle", run.unit);
            CHECK(bench.gp.read(run.at(0x3c)) == 0, "unit %u had an answer that is no OKAY", run.unit);
            run.check(bench);
            elements += run.n;
        }
        bench.gp.write(INTC + 12, {pending});
        left &= ~pending;
    }
    for (int i = 0; i < 4; ++i) bench.tick();
    CHECK(!(bench.interrupts() & 1), "the interrupt stays");
    for (HpPort* port : bench.ports) CHECK(port->idle(), "a port is busy after the last interrupt");
    return elements;
}

static void registers(Zynq& bench) {
    for (uint32_t unit = 0; unit < UNITS; ++unit) {
        const uint32_t base = REGISTERS + unit * PAGE;
        CHECK(bench.gp.read(base) == AP_IDLE && bench.gp.response == 0, "AP_CTRL after reset");
        CHECK(bench.gp.write(base + 0x10, {1 + unit, 2, 3, 4}) == 0, "a burst of writes");
        CHECK((bench.gp.burst(base + 0x10, 4) == std::vector<uint32_t>{1 + unit, 2, 0, 4}), "a burst of reads");
        bench.gp.write(base + 0x10, {0xAABBCCDD}, 6);
        CHECK(bench.gp.read(base + 0x10) == (0x00BBCC00 | (1 + unit)), "strobes");
    }
    for (uint32_t nowhere : {INTC + PAGE, REGISTERS + 0x1000000u, 0x7fff0000u}) {
        CHECK(bench.gp.write(nowhere, {1, 2}) == DECERR, "a write to nothing, 0x%x", nowhere);
        CHECK((bench.gp.burst(nowhere, 3) == std::vector<uint32_t>{0, 0, 0} && bench.gp.response == DECERR),
              "a read of nothing, 0x%x", nowhere);
    }
    // The interrupt controller: software's interrupts until it takes the hardware's.
    const uint32_t all = (1u << UNITS) - 1;
    bench.gp.write(INTC, {all});
    CHECK(bench.gp.read(INTC) == all && bench.gp.read(INTC + 4) == 0, "ISR by software");
    CHECK(bench.gp.read(INTC + 0x18) == ~0u, "IVR with nothing pending");
    bench.gp.write(INTC + 0x10, {all});
    CHECK(bench.gp.read(INTC + 8) == all && bench.gp.read(INTC + 0x18) == 0, "SIE, IVR");
    bench.gp.write(INTC + 0x14, {1});
    CHECK(bench.gp.read(INTC + 4) == (all & ~1u), "CIE");
    bench.gp.write(INTC + 12, {all});
    bench.gp.write(INTC + 8, {all});
    bench.gp.write(INTC + 0x1c, {3});
    CHECK(bench.gp.read(INTC) == 0 && bench.gp.read(INTC + 0x1c) == 3, "IAR, MER");
}

// An answer of the memory that is an error reaches the unit's own register.
static void errors(Zynq& bench) {
    for (unsigned port = 0; port < 3; ++port) {
        bench.ports[port]->error = 2;
        Run run(UNITS - 1, 20, bench.random);
        run.begin(bench);
        for (int i = 0; !(bench.gp.read(run.at(0)) & AP_DONE); ++i) CHECK(i < 1000, "not done");
        bench.ports[port]->error = 0;
        const uint32_t status = bench.gp.read(run.at(0x3c));
        CHECK(status >> 2 * port & 2, "HP%u answers SLVERR, the register says 0x%x", port, status);
        bench.gp.write(run.at(12), {1});
        bench.gp.write(INTC + 12, {~0u});
    }
}

int main(int argc, char** argv) {
    const int count = argc > 1 ? std::atoi(argv[1]) : 40;
    Zynq bench;
    for (size_t i = 0; i < bench.memory.bytes.size(); i += 4)
        *bench.floats(DDR + i) = float(int(bench.random.bits())) * (bench.random.chance(0.5) ? 1e-5f : 3e7f);
    bench.set(0.3, 1);
    registers(bench);
    uint64_t elements = 0;
    for (int i = 0; i < count; ++i) {
        bench.set(i % 4 ? 0.1 * bench.random.below(7) : 0, 1 + bench.random.below(60));
        elements += together(bench);
    }
    errors(bench);
    for (HpPort* port : bench.ports) CHECK(port->longest == 16, "no burst of 16, but of %u", port->longest);
    CHECK(bench.hp0.ids == (1u << UNITS) - 1, "IDs 0x%x on HP0", bench.hp0.ids);
    std::printf("%d runs, %llu elements equal\nPASS\n", count * UNITS, (unsigned long long)elements);
}
