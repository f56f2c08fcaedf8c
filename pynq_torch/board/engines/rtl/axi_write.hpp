// The memory's end of the AW, W and B channels.
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

// A set of the bytes of a bus.
struct Lanes {
    uint64_t low, high;

    static Lanes load(const Pin& strobes) {
        Lanes lanes{strobes.get(), 0};
        if (strobes.width == 128) std::memcpy(&lanes.high, strobes.bytes() + 8, 8);
        return lanes;
    }
    static Lanes range(uint32_t from, uint32_t count) {
        const Lanes a = below(from), b = below(from + count);
        return {b.low & ~a.low, b.high & ~a.high};
    }
    bool within(const Lanes& other) const { return !(low & ~other.low) && !(high & ~other.high); }
    bool has(uint32_t i) const { return (i < 64 ? low >> i : high >> (i - 64)) & 1; }

  private:
    static uint64_t ones(uint32_t n) { return n >= 64 ? ~uint64_t(0) : (uint64_t(1) << n) - 1; }
    static Lanes below(uint32_t n) { return {ones(n), n > 64 ? ones(n - 64) : 0}; }
};

class WriteSide {
  public:
    WriteSide(const Pins& pins, const std::string& prefix, AxiSide side)
        : s_(std::move(side)), aw_(pins, prefix, "AW",
                                   {"ADDR", "LEN", "SIZE", "BURST", "ID", "LOCK", "CACHE", "PROT",
                                    "QOS", "REGION", "USER"}),
          w_(pins, prefix, "W", {"DATA", "STRB", "LAST", "ID", "USER"}) {
        auto pin = [&](const char* what) { return pins.find(prefix + "_" + what); };
        addr_ = pin("AWADDR"), len_ = pin("AWLEN"), size_ = pin("AWSIZE"), burst_ = pin("AWBURST");
        id_ = pin("AWID"), lock_ = pin("AWLOCK");
        data_ = pin("WDATA"), strb_ = pin("WSTRB"), last_ = pin("WLAST");
        valid_ = pin("BVALID"), ready_ = pin("BREADY"), resp_ = pin("BRESP"), bid_ = pin("BID");
        if (exists() &&
            !(data_.exists() && w_.valid.exists() && valid_.exists() && ready_.exists()))
            throw std::runtime_error(s_.name +
                                     " has AWVALID, but not all of WDATA, WVALID, BVALID, BREADY");
        if (!exists()) return;
        s_.bus = data_.width / 8;
        words_ = std::max(1u, s_.bus / std::max(1u, s_.memory.model().hp_bytes));
    }
    bool exists() const { return aw_.valid.exists(); }
    // Bursts that were announced and have no answer.
    uint32_t unanswered() const { return open_.size(); }
    bool pending() const {
        return !open_.empty() || early_head_ != early_tail_ || aw_.valid.high() || w_.valid.high();
    }

    void drive(uint64_t cycle) {
        aw_.ready.set_bit(open_.size() < s_.memory.model().writes && !s_.chance.now());
        const bool room = filling_ < open_.size() || early_tail_ - early_head_ < kEarly;
        w_.ready.set_bit(room && s_.memory.write_room(s_.client, cycle, words_) &&
                         !s_.chance.now());
        if (!offered_ && !open_.empty() && answered(open_.at(0)) <= cycle && !s_.chance.now()) {
            offered_ = true;
            bid_.set(open_.at(0).id);
            resp_.set(open_.at(0).resp);
        }
        valid_.set_bit(offered_);
    }
    bool sample(uint64_t cycle) {
        bool moved = false;
        DirectionCounters& count = *s_.count;
        if (!open_.empty()) {
            ++count.busy;
            if (filling_ == open_.size()) {
                ++count.wait_response;
            } else if (w_.ready.high() && !w_.valid.high()) {
                ++count.stall_design;
                ++open_.at(filling_).stalls;
            }
        }
        if (offered_ && ready_.high()) {
            s_.end(open_.at(0), Transfer::write, cycle);
            open_.pop();
            --filling_;
            offered_ = false;
            moved = true;
        }
        if (aw_.sample(cycle, s_.name)) {
            s_.accept(open_.push(), cycle, "AW", addr_, len_, size_, burst_, lock_, id_, true);
            // Data may come before its address (A3.3.1).
            while (early_head_ != early_tail_ && filling_ < open_.size()) {
                const Early& beat = early_[early_head_++ % kEarly];
                put(cycle, beat.data, beat.strobes, beat.last);
            }
            moved = true;
        } else {
            count.stall_address += aw_.valid.high();
        }
        if (w_.sample(cycle, s_.name)) {
            const Lanes strobes = strb_.exists() ? Lanes::load(strb_) : Lanes{~0ull, ~0ull};
            const bool last = !last_.exists() || last_.high();
            if (filling_ < open_.size()) {
                put(cycle, data_.bytes(), strobes, last);
            } else {
                Early& beat = early_[early_tail_++ % kEarly];
                std::memcpy(beat.data, data_.bytes(), s_.bus);
                beat.strobes = strobes;
                beat.last = last;
            }
            moved = true;
        } else {
            count.stall_memory += w_.valid.high();
        }
        return moved;
    }
    void sample_reset(uint64_t cycle, uint64_t n) {
        if (n == 0) reset();
        aw_.sample_reset(cycle, n, s_.name);
        w_.sample_reset(cycle, n, s_.name);
    }
    void begin_run(uint64_t number) { s_.chance.begin_run(number); }
    void reset() {
        open_.clear();
        filling_ = early_head_ = early_tail_ = 0;
        offered_ = false;
        valid_.set_bit(false);
        aw_.reset();
        w_.reset();
    }
    void cut(uint64_t cycle) {
        for (uint32_t i = 0; i < open_.size(); ++i) s_.end(open_.at(i), Transfer::write, cycle, 1);
    }

  private:
    static constexpr uint32_t kEarly = 16;
    struct Early {
        uint8_t data[128];
        Lanes strobes;
        bool last;
    };

    // A beat of the burst that is being filled.
    void put(uint64_t cycle, const uint8_t* data, const Lanes& strobes, bool last) {
        OpenBurst& b = open_.at(filling_);
        const uint64_t from = b.shape.beat(b.done), base = from & ~uint64_t(s_.bus - 1);
        const uint32_t lane = uint32_t(from - base),
                       bytes = uint32_t(b.shape.beat_end(b.done) - from);
        const Lanes covered = Lanes::range(lane, bytes);
        if (last != (b.done + 1 == b.shape.beats))
            throw ProtocolError(cycle, s_.name,
                                std::string("WLAST is ") + (last ? "high" : "low") + place(b));
        if (strb_.exists() && !strobes.within(covered))
            throw ProtocolError(cycle, s_.name,
                                "WSTRB is high for bytes of the bus that the beat does not cover," +
                                    place(b));
        if (b.done == 0) {
            b.first = cycle;
            std::memcpy(&b.value, data + lane, std::min<size_t>(8, bytes));
        }
        uint32_t written = 0;
        if (!b.stray())
            written = store(s_.memory.map().at(from), data + lane, strobes, covered, lane, bytes);
        ++s_.count->beats;
        s_.count->bytes += written;
        b.moved += written;
        pass(cycle, b, bytes);
        if (++b.done == b.shape.beats) ++filling_;
    }
    static std::string place(const OpenBurst& b) {
        return " on beat " + std::to_string(b.done + 1) + " of " + std::to_string(b.shape.beats) +
               " (AWADDR " + hex(b.shape.address) + ")";
    }
    static uint32_t store(uint8_t* to, const uint8_t* data, const Lanes& strobes,
                          const Lanes& covered, uint32_t lane, uint32_t bytes) {
        if (covered.within(strobes)) {
            copy_beat(to, data, bytes);
            return bytes;
        }
        uint32_t written = 0;
        for (uint32_t i = 0; i < bytes; ++i) {
            if (!strobes.has(lane + i)) continue;
            to[i] = data[i];
            ++written;
        }
        return written;
    }
    // Accounts for a beat on the HP port; each command whose words are complete goes to DDR.
    void pass(uint64_t cycle, OpenBurst& b, uint32_t bytes) {
        if (b.stray()) {
            b.arrival[0] = cycle + 1;
            b.commands = 1;
            return;
        }
        const uint32_t words = b.shape.words_until(b.done), all = b.shape.words(),
                       most = s_.command_words();
        s_.memory.passed(s_.client, cycle, bytes, words - b.words);
        b.words = words;
        for (;;) {
            const uint32_t from = b.commands * most;
            if (from >= words) break;
            const uint32_t n = std::min(most, all - from);
            if (from + n > words) break;
            s_.memory.write(s_.client, cycle, s_.ddr_bytes(b, from, n), n,
                            &b.arrival[b.commands++]);
        }
    }
    uint64_t answered(const OpenBurst& b) const {
        return b.data_done() ? b.arrival[b.commands - 1] : Memory::kNever;
    }

    AxiSide s_;
    Channel aw_, w_;
    Pin addr_, len_, size_, burst_, id_, lock_, data_, strb_, last_, valid_, ready_, resp_, bid_;
    OpenBursts open_;
    uint32_t words_{};      // of the HP port in a beat of the whole bus
    uint32_t filling_ = 0;  // the first of them without all its data
    Early early_[kEarly];
    uint32_t early_head_ = 0, early_tail_ = 0;
    bool offered_ = false;  // a response waits for BREADY
};

}  // namespace rtl
}  // namespace pynq_torch
