// The last transactions on the buses, in a ring in memory the board reads.
//
// The ring always runs: what a design did last is the first question after it went wrong.
// pynq_torch/board/rtl/records.py reads the same layout.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pynq_torch {
namespace rtl {

enum class Transfer : uint8_t {
    read = 0,  // AXI4, by the design
    write = 1,
    register_read = 2,  // AXI4-Lite, by the PS
    register_write = 3,
    stream_in = 4,  // a packet, or what moved before the record had to end
    stream_out = 5,
};

struct TransactionRecord {
    uint64_t begin;    // 0   cycle of the address handshake; of a stream's first beat
    uint64_t first;    // 8   cycle of the first data beat
    uint64_t end;      // 16  cycle of the last data beat, of the response for writes
    uint64_t address;  // 24
    uint32_t bytes;    // 32
    uint32_t beats;    // 36
    uint64_t value;    // 40  of a register; the first 8 bytes of a burst's first beat
    uint32_t id;       // 48  AxID, TDEST
    uint16_t port;     // 52  row of the board's table of ports
    uint8_t kind;      // 54  Transfer
    uint8_t resp;      // 55  0 OKAY, 2 SLVERR, 3 DECERR
    uint8_t size;      // 56  log2 of the bytes of a beat
    uint8_t burst;     // 57  0 FIXED, 1 INCR, 2 WRAP
    uint16_t flags;    // 58  1: cut short, by a reset or a stray address
    uint32_t stalls;   // 60  cycles in which data could have moved, but the design was not ready
};
static_assert(sizeof(TransactionRecord) == 64, "layout shared with records.py");

class TraceRing {
  public:
    static constexpr uint32_t kMagic = 0x54524143;
    static constexpr size_t bytes(size_t capacity) {
        return 64 + capacity * sizeof(TransactionRecord);
    }
    // In at least bytes(capacity) bytes of shared memory; capacity is a power of two.
    explicit TraceRing(uint32_t capacity)
        : magic_(kMagic), record_bytes_(sizeof(TransactionRecord)), capacity_(capacity),
          reserved_{0}, written_(0), more_{} {}

    // The reader copies records, then looks at `written_` again: whatever was overwritten meanwhile
    // is dropped, so the writer never waits.
    void put(const TransactionRecord& record) {
        const uint64_t n = written_.load(std::memory_order_relaxed);
        reinterpret_cast<TransactionRecord*>(this + 1)[n & (capacity_ - 1)] = record;
        written_.store(n + 1, std::memory_order_release);
    }
    uint64_t written() const { return written_.load(std::memory_order_acquire); }
    uint32_t capacity() const { return capacity_; }
    const TransactionRecord& at(uint64_t n) const {
        return reinterpret_cast<const TransactionRecord*>(this + 1)[n & (capacity_ - 1)];
    }

  private:
    uint32_t magic_;                 // 0
    uint32_t record_bytes_;          // 4
    uint32_t capacity_;              // 8
    uint32_t reserved_;              // 12
    std::atomic<uint64_t> written_;  // 16  records since the overlay was loaded
    uint64_t more_[5];               // 24
};
static_assert(sizeof(TraceRing) == 64, "layout shared with records.py");

}  // namespace rtl
}  // namespace pynq_torch
