// Bench of axil_control: every control register's rules against a model of them in C++, under random
// accesses, strobes, stalls, starts and ends; data registers, holes, outputs.
#include "Vaxil_control.h"

#include "axi_lite.hpp"

// Words 0 and 1 are a 64-bit input, 2 is a hole, 3 an input, 4 an output: see the build's parameters.
static constexpr unsigned WORDS = 5, INPUTS = 0b01011, OUTPUTS = 0b10000;

// The registers as UG1399 tells them.
struct Registers {
    bool start = false, done = false, idle = true, ready = false, restart = false, gie = false,
         interrupt = false;
    unsigned ier = 0, isr = 0;
    uint32_t words[WORDS] = {};

    uint32_t read(unsigned offset) const {
        switch (offset) {
            case 0:
                return start | done << 1 | idle << 2 | ready << 3 | restart << 7 | interrupt << 9;
            case 4:
                return gie;
            case 8:
                return ier;
            case 12:
                return isr;
        }
        const unsigned i = (offset - 16) / 4;
        return i < WORDS ? words[i] : 0;
    }
    // One clock edge.
    void edge(bool ap_done, bool ap_ready, bool ap_idle, bool read_ctrl, const uint32_t* write,
              unsigned offset, unsigned strobes, uint32_t output) {
        const Registers was = *this;
        interrupt = was.gie && was.isr;
        idle = ap_idle;
        if (read_ctrl) done = ready = false;
        if (ap_done) {
            done = true;
            words[4] = output;
        }
        if (ap_ready) {
            start = was.restart;
            ready |= !was.restart;
        }
        if (write && strobes & 1) {
            if (offset == 0) {
                start |= *write & 1;
                restart = *write >> 7 & 1;
            }
            if (offset == 4) gie = *write & 1;
            if (offset == 8) ier = *write & 3;
            if (offset == 12) isr ^= *write & 3;
        }
        if (ap_done && was.ier & 1) isr |= 1;
        if (ap_ready && was.ier & 2) isr |= 2;
        const unsigned i = (offset - 16) / 4;
        if (write && offset >= 16 && i < WORDS && INPUTS >> i & 1) {
            for (int lane = 0; lane < 4; ++lane) {
                if (strobes >> lane & 1)
                    words[i] = (words[i] & ~(255u << 8 * lane)) | (*write & 255u << 8 * lane);
            }
        }
    }
};

struct Control : Bench<Vaxil_control> {
    Random random{9};
    Registers model;
    int left = 0;  // cycles until the kernel is done
    bool busy = false;
    unsigned write_offset = 0, runs = 0;
    uint32_t captured = 0;  // what the model says a read that was just taken must give
    Lite lite{{top->awvalid_i, top->awready_o, top->awaddr_i, top->wvalid_i, top->wready_o, top->wdata_i,
               top->wstrb_i, top->bvalid_o, top->bready_i, top->arvalid_i, top->arready_o, top->araddr_i,
               top->rvalid_o, top->rready_i, top->rdata_o},
              random,
              [this] { tick(); }};

    Control() {
        clock = &top->clk_i;
        top->ap_done_i = top->ap_ready_i = 0;
        top->ap_idle_i = 1;
        reset(top->rst_ni);
    }
    // The kernel behind: a run takes a random number of cycles from ap_start on.
    void tick() {
        top->ap_done_i = busy && left == 0;
        top->ap_ready_i = top->ap_done_i;
        low();  // ap_start_o is a register: settled
        top->ap_idle_i = !busy && !top->ap_start_o;
        top->values_i[4] = random.bits();
        low();
        lite.settled();
        CHECK(top->ap_start_o == model.start, "ap_start is %u, expected %u", top->ap_start_o, model.start);
        CHECK(top->interrupt_o == model.interrupt, "interrupt is %u, expected %u", top->interrupt_o,
              model.interrupt);
        for (unsigned i = 0; i < WORDS; ++i) {
            const uint32_t expected = INPUTS >> i & 1 ? model.words[i] : 0;
            CHECK(top->regs_o[i] == expected, "regs_o word %u is %08x, expected %08x", i, top->regs_o[i],
                  expected);
        }
        const bool ar = top->arvalid_i && top->arready_o, w = top->wvalid_i && top->wready_o;
        const uint32_t value = top->wdata_i;
        if (top->awvalid_i && top->awready_o) write_offset = top->awaddr_i & ~3u;
        if (ar) captured = model.read(top->araddr_i & ~3u);
        model.edge(top->ap_done_i, top->ap_ready_i, top->ap_idle_i, ar && (top->araddr_i & ~3u) == 0,
                   w ? &value : nullptr, write_offset, top->wstrb_i, top->values_i[4]);
        const bool ended = top->ap_done_i, begins = !busy && top->ap_start_o;
        high();
        if (ended) ++runs;
        if (begins)
            left = random.below(12);
        else if (busy)
            --left;
        busy = begins || (busy && !ended);
    }
};

int main() {
    Control bench;
    Random& random = bench.random;
    for (int i = 0; i < 40000; ++i) {
        bench.lite.stalls = i < 10000 ? 0 : 0.4;
        // Mostly control registers; sometimes arguments, holes, offsets behind them all.
        const unsigned offset = random.below(3) ? 4 * random.below(4) : 4 * random.below(16);
        if (random.below(2)) {
            uint32_t value = random.bits();
            if (offset == 0 && random.below(3)) value &= ~0x80u;
            bench.lite.write(offset, value, random.below(4) ? 15 : random.below(16));
        } else {
            const uint32_t value = bench.lite.read(offset);
            CHECK(value == bench.captured, "offset 0x%x reads %08x, expected %08x", offset, value,
                  bench.captured);
        }
        for (unsigned wait = random.below(10); wait > 5; --wait) bench.tick();
    }
    CHECK(bench.runs > 3000, "only %u runs", bench.runs);
    std::printf("axil_control: %u runs in %llu cycles\nPASS\n", bench.runs, (unsigned long long)bench.cycle);
    return 0;
}
