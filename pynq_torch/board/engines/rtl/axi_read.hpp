// The memory's end of the AR and R channels.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "axi_side.hpp"

namespace pynq_torch {
namespace rtl {

class ReadSide {
  public:
    ReadSide(const Pins& pins, const std::string& prefix, AxiSide side)
        : s_(std::move(side)), ar_(pins, prefix, "AR",
                                   {"ADDR", "LEN", "SIZE", "BURST", "ID", "LOCK", "CACHE", "PROT",
                                    "QOS", "REGION", "USER"}) {
        auto pin = [&](const char* what) { return pins.find(prefix + "_" + what); };
        addr_ = pin("ARADDR"), len_ = pin("ARLEN"), size_ = pin("ARSIZE"), burst_ = pin("ARBURST");
        id_ = pin("ARID"), lock_ = pin("ARLOCK");
        data_ = pin("RDATA"), valid_ = pin("RVALID"), ready_ = pin("RREADY"), last_ = pin("RLAST");
        resp_ = pin("RRESP"), rid_ = pin("RID");
        if (exists() && !(data_.exists() && valid_.exists() && ready_.exists()))
            throw std::runtime_error(s_.name +
                                     " has ARVALID, but not all of RDATA, RVALID, RREADY");
        if (exists()) s_.bus = data_.width / 8;
    }
    bool exists() const { return ar_.valid.exists(); }
    bool pending() const { return !open_.empty() || ar_.valid.high(); }
    // Bursts that were asked for and have not come to their end.
    uint32_t unanswered() const {
        uint32_t n = 0;
        for (uint32_t i = 0; i < open_.size(); ++i) n += !open_.at(i).ended;
        return n;
    }

    void drive(uint64_t cycle) {
        ar_.ready.set_bit(!open_.full() && s_.memory.read_room(s_.client) && !s_.chance.now());
        if (!offered_ && !open_.empty()) offer(cycle);
        valid_.set_bit(offered_ != nullptr);
    }
    // Returns whether anything moved.
    bool sample(uint64_t cycle) {
        bool moved = false;
        DirectionCounters& count = *s_.count;
        if (!open_.empty()) {
            ++count.busy;
            if (!offered_) {
                count.stall_memory += ready_.high();
            } else if (!ready_.high()) {
                ++count.stall_design;
                ++offered_->stalls;
            } else {
                take(cycle);
                moved = true;
            }
        }
        if (ar_.sample(cycle, s_.name)) {
            accept(cycle);
            moved = true;
        } else {
            count.stall_address += ar_.valid.high();
        }
        return moved;
    }
    void sample_reset(uint64_t cycle, uint64_t n) {
        if (n == 0) reset();
        ar_.sample_reset(cycle, n, s_.name);
    }
    void begin_run(uint64_t number) { s_.chance.begin_run(number); }
    void reset() {
        open_.clear();
        current_ = offered_ = nullptr;
        valid_.set_bit(false);
        ar_.reset();
    }
    void cut(uint64_t cycle) {
        for (uint32_t i = 0; i < open_.size(); ++i)
            if (!open_.at(i).ended) s_.end(open_.at(i), Transfer::read, cycle, 1);
    }

  private:
    void accept(uint64_t cycle) {
        OpenBurst& b = open_.push();
        s_.accept(b, cycle, "AR", addr_, len_, size_, burst_, lock_, id_, false);
        const uint32_t words = b.shape.words(), most = s_.command_words();
        if (b.stray()) {
            std::fill_n(b.arrival, OpenBurst::kCommands, cycle + 1);
            return;
        }
        for (uint32_t from = 0; from < words; from += most) {
            const uint32_t n = std::min(most, words - from);
            s_.memory.read(s_.client, cycle, s_.ddr_bytes(b, from, n), n, &b.arrival[b.commands++]);
        }
    }
    // The cycle in which the next beat of a burst has come.
    uint64_t due(const OpenBurst& b) const {
        if (s_.memory.ideal() || b.stray()) return b.begin + 1;
        const uint32_t word = b.shape.words_until(b.done) - 1;
        const uint32_t shift = uint32_t(__builtin_ctz(s_.command_words()));  // 16 words
        const uint64_t arrival = b.arrival[word >> shift];
        if (arrival == Memory::kNever) return arrival;
        return arrival + (word & (s_.command_words() - 1));
    }
    // Puts the next beat on the R channel if it has come.
    void offer(uint64_t cycle) {
        if (s_.chance.now()) return;
        if (!current_) current_ = choose(cycle);
        OpenBurst& b = *current_;
        if (due(b) > cycle) return;
        offered_ = &b;
        const uint64_t from = b.shape.beat(b.done), base = from & ~uint64_t(s_.bus - 1);
        const uint32_t bytes = uint32_t(b.shape.beat_end(b.done) - from);
        if (b.stray()) {
            std::memset(data_.bytes(), kNobody, s_.bus);
        } else if (bytes == s_.bus) {
            copy_beat(data_.bytes(), s_.memory.map().at(base), s_.bus);
        } else {
            // Lanes that carry nothing hold no memory either: a design that uses them is wrong.
            std::memset(data_.bytes(), kNobody, s_.bus);
            std::memcpy(data_.bytes() + (from - base), s_.memory.map().at(from), bytes);
        }
        if (b.done == 0) {
            b.first = cycle;
            std::memcpy(&b.value, data_.bytes() + (from - base), std::min<size_t>(8, bytes));
        }
        rid_.set(b.id);
        resp_.set(b.resp);
        last_.set_bit(b.done + 1 == b.shape.beats);
        moving_ = bytes;
    }
    // The oldest burst; with random stalls at times the oldest of another ID, as AXI allows (A5.3).
    OpenBurst* choose(uint64_t cycle) {
        OpenBurst* oldest = nullptr;
        for (uint32_t i = 0; i < open_.size(); ++i) {
            OpenBurst& b = open_.at(i);
            if (b.ended) continue;
            if (!oldest) {
                oldest = &b;
                if (!s_.chance || !(s_.chance.next() & 1)) break;
            } else if (b.id != oldest->id && first_of_id(i) && due(b) <= cycle) {
                return &b;
            }
        }
        return oldest;
    }
    bool first_of_id(uint32_t i) {
        for (uint32_t j = 0; j < i; ++j)
            if (!open_.at(j).ended && open_.at(j).id == open_.at(i).id) return false;
        return true;
    }
    void take(uint64_t cycle) {
        OpenBurst& b = *offered_;
        offered_ = nullptr;
        ++s_.count->beats;
        s_.count->bytes += moving_;
        b.moved += moving_;
        if (!b.stray() && !s_.memory.ideal()) {
            const uint32_t words = b.shape.words_until(b.done);
            s_.memory.taken(s_.client, words - b.words);
            b.words = words;
        }
        if (++b.done < b.shape.beats) return;
        b.ended = true;
        current_ = nullptr;
        s_.end(b, Transfer::read, cycle);
        while (!open_.empty() && open_.at(0).ended) open_.pop();
    }

    static constexpr int kNobody = 0xEE;
    AxiSide s_;
    Channel ar_;
    Pin addr_, len_, size_, burst_, id_, lock_, data_, valid_, ready_, last_, resp_, rid_;
    OpenBursts open_;
    OpenBurst* current_ = nullptr;  // whose beats are on the R channel
    OpenBurst* offered_ = nullptr;  // the same, while a beat waits for RREADY
    uint32_t moving_ = 0;           // bytes of that beat
};

}  // namespace rtl
}  // namespace pynq_torch
