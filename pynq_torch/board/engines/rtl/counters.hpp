// What moved through each port and what it waited for, counted in memory the board reads.
//
// pynq_torch/board/rtl/records.py reads the same layout.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pynq_torch {
namespace rtl {

// One direction of a port. Every counter but `latency_max` only grows; all but the first three and
// the latencies are cycles of the clock.
struct DirectionCounters {
    uint64_t transactions;   // 0   ended: last data beat read, response given, TLAST
    uint64_t beats;          // 8
    uint64_t bytes;          // 16  strobed ones only, for writes
    uint64_t busy;           // 24  something was under way
    uint64_t stall_address;  // 32  an address was valid and not taken
    uint64_t stall_memory;   // 40  the design was ready for data, the memory was not
    uint64_t stall_design;   // 48  the memory was ready for data, the design was not
    uint64_t wait_response;  // 56  all data was written, the response had not come
    uint64_t latency_sum;    // 64  of all transactions, from the address to the end
    uint64_t latency_max;    // 72
    uint64_t errors;         // 80  answered with SLVERR or DECERR
    uint64_t reserved;       // 88

    void ended(uint64_t latency) {
        ++transactions;
        latency_sum += latency;
        if (latency > latency_max) latency_max = latency;
    }
};
static_assert(sizeof(DirectionCounters) == 96, "layout shared with records.py");

struct PortCounters {
    DirectionCounters read;   // towards the design: memory reads, incoming streams
    DirectionCounters write;  // from the design
};
static_assert(sizeof(PortCounters) == 192, "layout shared with records.py");

// Is in shared memory; its maker gives at least bytes(ports) zeroed bytes.
struct CounterTable {
    uint32_t magic;               // 0
    uint32_t ports;               // 4
    std::atomic<uint64_t> cycle;  // 8   cycles of the clock since the overlay was loaded
    uint64_t reserved[6];

    static constexpr uint32_t kMagic = 0x434e5452;
    static constexpr size_t bytes(size_t ports) { return 64 + ports * sizeof(PortCounters); }

    explicit CounterTable(uint32_t count) : magic(kMagic), ports(count), cycle(0), reserved{} {}
    PortCounters* port(size_t index) { return reinterpret_cast<PortCounters*>(this + 1) + index; }
};
static_assert(sizeof(CounterTable) == 64, "layout shared with records.py");

}  // namespace rtl
}  // namespace pynq_torch
