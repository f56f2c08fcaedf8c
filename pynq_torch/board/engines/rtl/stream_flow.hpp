// When the beats of a stream may move that a DMA carries to or from DDR, and what is counted of it.
//
// The DMA itself is a process of its own which moves the bytes. In the design's clock they appear as
// the DMA on its HP port could have brought them, in competition with the AXI4 ports.
#pragma once

#include <algorithm>
#include <cstdint>

#include "counters.hpp"
#include "memory.hpp"
#include "trace.hpp"

namespace pynq_torch {
namespace rtl {

class DmaFlow {
  public:
    static constexpr uint32_t kBuffer = 1024;  // bytes, see kBurst

    // to_pl: from memory to the stream (MM2S).
    DmaFlow(Memory& memory, int hp, bool to_pl)
        : memory_(memory), client_(memory.join(hp)), to_pl_(to_pl) {}

    // ---- to_pl ----

    // In every cycle, before can_take: so many bytes wait in the ring.
    void offer(uint64_t cycle, uint64_t waiting) {
        while (head_ != tail_ && command(head_).arrival <= cycle) {
            Command& c = command(head_);
            const uint32_t words = uint32_t(std::min<uint64_t>(c.words, cycle - c.arrival + 1));
            const uint32_t come = memory_.ideal() || words == c.words
                                      ? c.bytes
                                      : std::min(c.bytes, words * memory_.model().hp_bytes);
            credit_ += come - c.come;
            c.come = come;
            if (come < c.bytes) break;
            if (!memory_.ideal()) memory_.taken(client_, c.words);
            asked_ -= c.bytes;
            ++head_;
        }
        uint64_t known = credit_ + asked_;
        for (uint32_t i = head_; i != tail_; ++i) known -= command(i).come;
        while (known < waiting && known < kBuffer && tail_ - head_ < kCommands &&
               memory_.read_room(client_)) {
            const uint32_t bytes = uint32_t(std::min<uint64_t>(kBurst, waiting - known));
            Command& c = push(bytes);
            memory_.read(client_, cycle, bytes, c.words, &c.arrival);
            asked_ += bytes;
            known += bytes;
        }
    }
    bool can_take(uint32_t bytes) const { return credit_ >= bytes; }
    void take(uint32_t bytes) { credit_ -= std::min<uint64_t>(bytes, credit_); }

    // ---- from the design to memory (S2MM) ----

    bool can_give(uint32_t bytes) {
        retire();
        return credit_ + asked_ + bytes <= std::max<uint64_t>(kBuffer, bytes);
    }
    void give(uint64_t cycle, uint32_t bytes, bool last) {
        credit_ += bytes;
        if (last) ending_ = credit_;
        send(cycle);
    }

    // Cycles would bring something forward.
    bool pending() {
        if (!to_pl_) retire();
        return head_ != tail_ || ending_ != 0;
    }
    void reset() {
        memory_.drop(client_);
        head_ = tail_ = 0;
        credit_ = asked_ = ending_ = 0;
    }

  private:
    // Bursts of 16 words of 64 bits, as long as the HP port takes, of which four are on their way:
    // with the port's latency that keeps it busy. PG021 says of the DMA that it pipelines addresses,
    // but not how many; its buffer is taken as large as that of the HP port.
    static constexpr uint32_t kBurst = 128, kCommands = 4;
    struct Command {
        uint64_t arrival;
        uint32_t bytes, words, come;
    };

    Command& command(uint32_t i) { return commands_[i % kCommands]; }
    Command& push(uint32_t bytes) {
        Command& c = command(tail_++);
        const uint32_t word = memory_.ideal() ? kBurst : memory_.model().hp_bytes;
        c = {Memory::kNever, bytes, (bytes + word - 1) / word, 0};
        return c;
    }
    void retire() {
        while (head_ != tail_ && command(head_).arrival <= memory_.cycle())
            asked_ -= command(head_++).bytes;
        send(memory_.cycle());
    }
    // Gives the memory what makes a whole burst, or ends a packet, while its HP port has room.
    void send(uint64_t cycle) {
        while ((credit_ >= kBurst || ending_) && tail_ - head_ < kCommands &&
               memory_.write_room(client_, cycle, kBurst / 8)) {
            Command& c = push(uint32_t(std::min<uint64_t>(kBurst, credit_)));
            credit_ -= c.bytes;
            asked_ += c.bytes;
            ending_ -= std::min<uint64_t>(ending_, c.bytes);
            memory_.passed(client_, cycle, c.bytes, c.words);
            memory_.write(client_, cycle, c.bytes, c.words, &c.arrival);
        }
    }

    Memory& memory_;
    int client_;
    bool to_pl_;
    Command commands_[kCommands];
    uint32_t head_ = 0, tail_ = 0;
    uint64_t credit_ = 0;  // bytes here: come from memory, or not yet sent there
    uint64_t asked_ = 0;   // bytes of the commands
    uint64_t ending_ = 0;  // bytes here up to the last TLAST
};

// Counts a stream's beats and records its packets.
class StreamMeter {
  public:
    StreamMeter(CounterTable* counters, TraceRing* trace, uint16_t index, bool incoming)
        : count_(incoming ? &counters->port(index)->read : &counters->port(index)->write),
          trace_(trace), incoming_(incoming) {
        open_.port = index;
        open_.kind = uint8_t(incoming ? Transfer::stream_in : Transfer::stream_out);
        open_.burst = 1;
    }

    // In every cycle; bytes, last, value (first bytes of the beat) and dest matter when it moves.
    void sample(uint64_t cycle, bool valid, bool ready, uint32_t bytes, bool last, uint64_t value,
                uint32_t dest) {
        if (!valid || !ready) {
            if (open_.beats == 0) {
                count_->stall_design += incoming_ && valid;
                count_->stall_memory += !incoming_ && valid;
                return;
            }
            ++count_->busy;
            // The side that keeps the other waiting: the sender without a beat, the receiver without room.
            if (valid == incoming_ && valid != ready) {
                ++count_->stall_design;
                ++open_.stalls;
            } else if (valid != ready) {
                ++count_->stall_memory;
            }
            return;
        }
        ++count_->busy;
        ++count_->beats;
        count_->bytes += bytes;
        if (open_.beats == 0) {
            open_.begin = open_.first = cycle;
            open_.value = value;
            open_.id = dest;
        }
        ++open_.beats;
        open_.bytes += bytes;
        open_.end = cycle;
        if (last) {
            count_->ended(cycle - open_.begin);
            put(0);
        } else if (open_.beats == kLongest) {
            put(1);
        }
    }
    // Records an unfinished packet: at the end of a run, or before giving up.
    void cut() {
        if (open_.beats) put(1);
    }

  private:
    static constexpr uint32_t kLongest = 1u << 20;  // beats without TLAST in a record

    void put(uint16_t flags) {
        open_.flags = flags;
        if (trace_) trace_->put(open_);
        open_.beats = open_.bytes = open_.stalls = 0;
    }

    DirectionCounters* count_;
    TraceRing* trace_;
    bool incoming_;
    TransactionRecord open_{};
};

}  // namespace rtl
}  // namespace pynq_torch
