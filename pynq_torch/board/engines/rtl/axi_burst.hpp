// AXI4 bursts: what an address asks for, and those between their address and their end.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>

#include "checker.hpp"
#include "trace.hpp"

namespace pynq_torch {
namespace rtl {

// What an address asks for, and how an HP port of 64 bits carries it.
struct BurstShape {
    uint64_t address;
    uint32_t beats, burst;
    uint32_t bytes;  // of a beat
    uint32_t shift;  // log2 of the bytes of a word of the HP port

    uint64_t aligned() const { return address & ~uint64_t(bytes - 1); }
    // First address of beat k.
    uint64_t beat(uint32_t k) const {
        if (burst == kFixed || k == 0) return address;
        if (burst == kIncr) return aligned() + uint64_t(k) * bytes;
        const uint64_t all = uint64_t(beats) * bytes;
        return wrap_low() + ((address - wrap_low() + uint64_t(k) * bytes) & (all - 1));
    }
    // The address behind the last byte of beat k.
    uint64_t beat_end(uint32_t k) const { return (beat(k) & ~uint64_t(bytes - 1)) + bytes; }
    uint64_t low() const { return burst == kWrap ? wrap_low() : address; }
    uint64_t high() const {
        return burst == kFixed
                   ? aligned() + bytes
                   : (burst == kWrap ? wrap_low() : aligned()) + uint64_t(beats) * bytes;
    }
    uint32_t words_a_beat() const {
        return uint32_t(((beat_end(0) - 1) >> shift) - (address >> shift)) + 1;
    }
    // Words on the HP port. Narrow beats are packed ("upsized") except in FIXED bursts.
    uint32_t words() const {
        if (burst == kFixed) return beats * words_a_beat();
        return uint32_t(((high() - 1) >> shift) - (low() >> shift)) + 1;
    }
    // Words that are through once beat k is.
    uint32_t words_until(uint32_t k) const {
        if (k + 1 == beats) return words();
        if (burst == kFixed) return (k + 1) * words_a_beat();
        if (burst == kIncr) return uint32_t(((beat_end(k) - 1) >> shift) - (address >> shift)) + 1;
        const uint64_t inside = address & ((1u << shift) - 1);
        return std::min(words(), uint32_t((inside + uint64_t(k + 1) * bytes - 1) >> shift) + 1);
    }
    // Bytes that DDR moves for `count` words from word `from` on.
    uint32_t ddr_bytes(uint32_t from, uint32_t count, uint32_t unit) const {
        if (burst == kFixed) return count * std::max(1u << shift, unit);
        const uint64_t start = ((low() >> shift) + from) << shift;
        const uint64_t end = start + (uint64_t(count) << shift);
        return uint32_t((end + unit - 1) / unit * unit - start / unit * unit);
    }

  private:
    uint64_t wrap_low() const { return address & ~(uint64_t(beats) * bytes - 1); }
};

// A burst between its address and its end; AxiSide::accept and OpenBursts::push set what is in it.
struct OpenBurst {
    static constexpr uint32_t kCommands = 40;  // 4 KB in commands of 128 bytes, and to spare
    BurstShape shape;
    uint64_t begin, first, value;
    uint32_t id, size, resp;
    uint32_t done;      // beats
    uint32_t words;     // through
    uint32_t commands;  // given to the memory
    uint32_t moved;     // bytes
    uint32_t stalls;
    bool ended;
    uint64_t arrival[kCommands];

    bool stray() const { return resp != kOkay; }
    bool data_done() const { return done == shape.beats; }
    TransactionRecord record(Transfer kind, uint16_t port, uint64_t end, uint16_t flags) const {
        return {begin,
                first,
                end,
                shape.address,
                moved,
                done,
                value,
                id,
                port,
                uint8_t(kind),
                uint8_t(resp),
                uint8_t(size),
                uint8_t(shape.burst),
                flags,
                stalls};
    }
};

// Bursts in the order of their addresses, in memory that is never moved: the memory model writes
// arrivals into them.
class OpenBursts {
  public:
    static constexpr uint32_t kCapacity = 128;
    bool empty() const { return head_ == tail_; }
    bool full() const { return tail_ - head_ == kCapacity; }
    uint32_t size() const { return tail_ - head_; }
    OpenBurst& at(uint32_t i) { return slots_[(head_ + i) % kCapacity]; }
    const OpenBurst& at(uint32_t i) const { return slots_[(head_ + i) % kCapacity]; }
    OpenBurst& push() {
        OpenBurst& b = slots_[tail_++ % kCapacity];
        b.first = b.value = 0;
        b.resp = kOkay;
        b.done = b.words = b.commands = b.moved = b.stalls = 0;
        b.ended = false;
        return b;
    }
    void pop() { ++head_; }
    void clear() { head_ = tail_ = 0; }

  private:
    std::unique_ptr<OpenBurst[]> slots_{new OpenBurst[kCapacity]};
    uint32_t head_ = 0, tail_ = 0;
};

}  // namespace rtl
}  // namespace pynq_torch
