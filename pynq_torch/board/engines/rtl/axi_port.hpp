// The memory's end of a design's AXI4 port (m_axi): takes its bursts and answers them.
//
// Data goes straight between the shared DDR and Verilator's signals. When each beat may move, the
// memory model says (memory.hpp); what the design may do, the checker (checker.hpp).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include "axi_read.hpp"
#include "axi_write.hpp"

namespace pynq_torch {
namespace rtl {

class AxiPort : public Port {
  public:
    // prefix: of the signals' names, "m_axi_gmem". index: row of the table of ports. name: for
    // messages. hp: which HP port of the PS the board's design connects it to.
    AxiPort(const Pins& pins, const std::string& prefix, Memory& memory, int hp, uint16_t index,
            const std::string& name, CounterTable* counters, TraceRing* trace)
        : memory_(memory), client_(memory.join(hp)),
          read_(pins, prefix,
                {memory, client_, index, name, &counters->port(index)->read, trace,
                 memory.chance(2 * index)}),
          write_(pins, prefix,
                 {memory, client_, index, name, &counters->port(index)->write, trace,
                  memory.chance(2 * index + 1)}) {
        if (!read_.exists() && !write_.exists())
            throw std::runtime_error(name + " has neither " + prefix + "_ARVALID nor " + prefix +
                                     "_AWVALID");
        for (const char* data : {"_RDATA", "_WDATA"}) {
            const uint32_t width = pins.find(prefix + data).width;
            if (width && (width < 8 || width > 1024 || (width & (width - 1))))
                throw std::runtime_error(prefix + data + " has " + std::to_string(width) +
                                         " bits; AXI4 data has 8 to 1024, a power of two");
        }
    }
    void drive(uint64_t cycle) override {
        if (read_.exists()) read_.drive(cycle);
        if (write_.exists()) write_.drive(cycle);
    }
    void sample(uint64_t cycle) override {
        const bool read = read_.exists() && read_.sample(cycle);
        const bool write = write_.exists() && write_.sample(cycle);
        if (read || write) last_handshake = cycle;
    }
    bool pending() const override {
        return (read_.exists() && read_.pending()) || (write_.exists() && write_.pending());
    }
    // Bursts on their way: what a reset of the design alone leaves without a taker.
    uint32_t unanswered() const { return read_.unanswered() + write_.unanswered(); }
    void reset() override {
        memory_.drop(client_);
        read_.reset();
        write_.reset();
    }
    void begin_run(uint64_t number) override {
        read_.begin_run(number);
        write_.begin_run(number);
    }
    void sample_reset(uint64_t cycle, uint64_t n) override {
        if (n == 0) memory_.drop(client_);
        read_.sample_reset(cycle, n);
        write_.sample_reset(cycle, n);
    }
    // Writes what is under way into the trace, cut short: the last thing to do before giving up.
    void cut(uint64_t cycle) {
        read_.cut(cycle);
        write_.cut(cycle);
    }

  private:
    Memory& memory_;
    int client_;
    ReadSide read_;
    WriteSide write_;
};

}  // namespace rtl
}  // namespace pynq_torch
