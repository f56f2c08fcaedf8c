// What reading and writing have in common at the memory's end of an AXI4 port.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "axi_burst.hpp"
#include "checker.hpp"
#include "counters.hpp"
#include "memory.hpp"
#include "pins.hpp"
#include "trace.hpp"

namespace pynq_torch {
namespace rtl {

// What both directions of a port know.
struct AxiSide {
    Memory& memory;
    int client;
    uint16_t index;
    std::string name;
    DirectionCounters* count;
    TraceRing* trace;
    Chance chance;
    uint32_t bus{};  // bytes of the data bus

    // Reads the address channel `c` at its handshake, and checks it.
    void accept(OpenBurst& b, uint64_t cycle, const char* channel, const Pin& addr, const Pin& len,
                const Pin& size, const Pin& burst, const Pin& lock, const Pin& id, bool write) {
        b.begin = cycle;
        b.id = uint32_t(id.get());
        b.size = size.exists() ? uint32_t(size.get()) : log2(bus);
        b.shape.address = addr.get();
        b.shape.beats = uint32_t(len.get()) + 1;
        b.shape.bytes = 1u << b.size;
        b.shape.burst = burst.exists() ? uint32_t(burst.get()) : uint32_t(kIncr);
        b.shape.shift = log2(memory.ideal() ? bus : memory.model().hp_bytes);
        check_burst(cycle, name, channel, b.shape.address, b.shape.beats, b.size, b.shape.burst,
                    lock.get() != 0, bus);
        const uint64_t low = b.shape.low();
        if (!memory.allowed(cycle, low, b.shape.high() - low, write, index)) {
            b.resp = kDecerr;
            ++count->errors;
        }
    }
    static uint32_t log2(uint32_t power) {
        uint32_t n = 0;
        while ((1u << n) < power) ++n;
        return n;
    }
    uint32_t command_words() const { return memory.model().hp_burst_words; }
    uint32_t ddr_bytes(const OpenBurst& b, uint32_t from, uint32_t words) const {
        return b.shape.ddr_bytes(from, words, memory.model().ddr_burst_bytes);
    }
    void end(const OpenBurst& b, Transfer kind, uint64_t cycle, uint16_t flags = 0) const {
        if (flags == 0) count->ended(cycle - b.begin);
        if (trace) trace->put(b.record(kind, index, cycle, flags));
    }
};

inline void copy_beat(uint8_t* to, const uint8_t* from, uint32_t bytes) {
    switch (bytes) {  // sizes the compiler knows become plain moves
    case 4: std::memcpy(to, from, 4); break;
    case 8: std::memcpy(to, from, 8); break;
    case 16: std::memcpy(to, from, 16); break;
    case 32: std::memcpy(to, from, 32); break;
    case 64: std::memcpy(to, from, 64); break;
    case 128: std::memcpy(to, from, 128); break;
    default: std::memcpy(to, from, bytes);
    }
}

}  // namespace rtl
}  // namespace pynq_torch
