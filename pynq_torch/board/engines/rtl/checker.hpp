// The rules of AXI4, AXI4-Lite and AXI4-Stream that a design can break, checked in every cycle.
//
// Rules by section of ARM IHI 0022H (AXI) and IHI 0051A (AXI4-Stream). A broken one throws
// ProtocolError: what follows it in the waveform means nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "model.hpp"
#include "pins.hpp"

namespace pynq_torch {
namespace rtl {

inline std::string hex(uint64_t value) {
    std::ostringstream text;
    text << "0x" << std::hex << value;
    return text.str();
}

// One channel that the design drives: its VALID, the READY it is given, and what it carries.
//
// VALID stays high, and what the channel carries stays the same, until READY (A3.2.1, 2.2.1); VALID
// is low during reset (A3.1.2, 2.8.2).
class Channel {
  public:
    Channel() = default;
    // payload: names behind `prefix`; those the design does not have are left out.
    Channel(const Pins& pins, const std::string& prefix, const char* channel,
            std::initializer_list<const char*> payload)
        : valid(pins.find(prefix + "_" + channel + "VALID")),
          ready(pins.find(prefix + "_" + channel + "READY")), channel_(channel) {
        for (const char* name : payload) {
            const Pin pin = pins.find(prefix + "_" + channel + name);
            if (pin.exists()) carried_.push_back({pin, name, std::vector<uint8_t>(pin.nbytes())});
        }
    }

    Pin valid, ready;

    // Returns whether the channel's beat moves in this cycle.
    bool sample(uint64_t cycle, const std::string& port) {
        const bool now = valid.high();
        if (waiting_) compare(cycle, port, now);
        if (!now) return false;
        if (ready.high()) {
            waiting_ = false;
            return true;
        }
        if (!waiting_) {
            waiting_ = true;
            for (Carried& c : carried_)
                std::memcpy(c.before.data(), c.pin.bytes(), c.before.size());
        }
        return false;
    }
    void sample_reset(uint64_t cycle, uint64_t n, const std::string& port) {
        waiting_ = false;
        // A design takes its reset through a few registers before it must have obeyed.
        if (n >= 8 && valid.high())
            throw ProtocolError(cycle, port, channel_ + "VALID is high while the reset is active");
    }
    void reset() { waiting_ = false; }

  private:
    struct Carried {
        Pin pin;
        const char* name;
        std::vector<uint8_t> before;
    };

    void compare(uint64_t cycle, const std::string& port, bool now) const {
        if (!now)
            throw ProtocolError(cycle, port,
                                channel_ + "VALID fell before " + channel_ +
                                    "READY: a beat that was offered was taken back");
        for (const Carried& c : carried_) {
            if (std::memcmp(c.before.data(), c.pin.bytes(), c.before.size()) == 0) continue;
            throw ProtocolError(cycle, port,
                                channel_ + c.name + " changed from " +
                                    text(c.before.data(), c.before.size()) + " to " +
                                    text(c.pin.bytes(), c.before.size()) + " while " + channel_ +
                                    "VALID waited for " + channel_ + "READY");
        }
    }
    static std::string text(const uint8_t* bytes, size_t n) {
        std::string out = "0x";
        char digits[3];
        for (size_t i = n; i-- > 0;) {
            std::snprintf(digits, sizeof digits, "%02x", bytes[i]);
            out += digits;
        }
        return out;
    }

    std::string channel_;
    std::vector<Carried> carried_;
    bool waiting_ = false;
};

enum Burst : uint32_t { kFixed = 0, kIncr = 1, kWrap = 2 };
enum Resp : uint32_t { kOkay = 0, kExokay = 1, kSlverr = 2, kDecerr = 3 };

// Checks what an address channel asks for; `beats` counts from 1, `size` is log2 of a beat's bytes.
inline void check_burst(uint64_t cycle, const std::string& port, const char* channel,
                        uint64_t address, uint32_t beats, uint32_t size, uint32_t burst, bool lock,
                        uint32_t bus_bytes) {
    const std::string ax = channel;
    const uint64_t bytes = uint64_t(1) << size;
    auto broken = [&](const std::string& what) {
        throw ProtocolError(cycle, port,
                            what + " (" + ax + "ADDR " + hex(address) + ", " +
                                std::to_string(beats) + (beats == 1 ? " beat of " : " beats of ") +
                                std::to_string(bytes) + " bytes)");
    };
    if (bytes > bus_bytes)
        broken(ax + "SIZE says " + std::to_string(bytes) + " bytes a beat on a data bus of " +
               std::to_string(bus_bytes));
    if (burst > kWrap) broken(ax + "BURST is 3, which is reserved");
    // AXI4 takes exclusive accesses through AxLOCK; the HP ports of this board serve none.
    if (lock) broken(ax + "LOCK asks for an exclusive access, which this memory does not support");
    if (burst == kFixed && beats > 16) broken("a FIXED burst has at most 16 beats");
    if (burst == kWrap) {
        if (beats != 2 && beats != 4 && beats != 8 && beats != 16)
            broken("a WRAP burst has 2, 4, 8 or 16 beats");
        if (address & (bytes - 1)) broken("a WRAP burst starts at a multiple of a beat's bytes");
    }
    if (burst == kIncr) {
        const uint64_t last = (address & ~(bytes - 1)) + beats * bytes - 1;
        if (last >> 12 != address >> 12)
            broken("a burst crosses the 4 KB boundary at " + hex((address | 4095) + 1));
    }
}

// The answers of a unit on its AXI4-Lite port, where the PS asks.
class LiteChecker {
  public:
    LiteChecker(const Pins& pins, const std::string& prefix, std::string name)
        : b_(pins, prefix, "B", {"RESP"}), r_(pins, prefix, "R", {"DATA", "RESP"}),
          name_(std::move(name)) {
        for (int i = 0; i < 3; ++i) {
            const std::string channel = prefix + "_" + (i == 0 ? "AW" : i == 1 ? "W" : "AR");
            valid_[i] = pins.find(channel + "VALID");
            ready_[i] = pins.find(channel + "READY");
        }
        bresp_ = pins.find(prefix + "_BRESP");
        rresp_ = pins.find(prefix + "_RRESP");
    }

    void sample(uint64_t cycle) {
        // One by one: g++ 12 at -O3 -march=native mixes the three up when this is a loop.
        if (valid_[0].high() && ready_[0].high()) ++asked_[0];
        if (valid_[1].high() && ready_[1].high()) ++asked_[1];
        if (valid_[2].high() && ready_[2].high()) ++asked_[2];
        // A response comes after what it answers (A3.3.1).
        if (b_.valid.high()) {
            if (asked_[0] == 0 || asked_[1] == 0)
                throw ProtocolError(cycle, name_, "BVALID is high without a write to answer");
            if (bresp_.get() == kExokay)
                throw ProtocolError(cycle, name_, "BRESP is EXOKAY on AXI4-Lite");
        }
        if (r_.valid.high()) {
            if (asked_[2] == 0)
                throw ProtocolError(cycle, name_, "RVALID is high without a read to answer");
            if (rresp_.get() == kExokay)
                throw ProtocolError(cycle, name_, "RRESP is EXOKAY on AXI4-Lite");
        }
        if (b_.sample(cycle, name_)) {
            --asked_[0];
            --asked_[1];
        }
        if (r_.sample(cycle, name_)) --asked_[2];
    }
    void sample_reset(uint64_t cycle, uint64_t n) {
        reset();
        b_.sample_reset(cycle, n, name_);
        r_.sample_reset(cycle, n, name_);
    }
    void reset() {
        for (uint32_t& n : asked_) n = 0;
        b_.reset();
        r_.reset();
    }

  private:
    Channel b_, r_;
    Pin valid_[3], ready_[3], bresp_, rresp_;
    uint32_t asked_[3] = {0, 0, 0};  // AW, W, AR beats without a response
    std::string name_;
};

// A stream that a unit sends.
class StreamChecker {
  public:
    StreamChecker(const Pins& pins, const std::string& prefix, std::string name)
        : t_(pins, prefix, "T", {"DATA", "KEEP", "STRB", "LAST", "USER", "ID", "DEST"}),
          keep_(pins.find(prefix + "_TKEEP")), strb_(pins.find(prefix + "_TSTRB")),
          name_(std::move(name)) {}

    // Returns whether a beat moves in this cycle.
    bool sample(uint64_t cycle) {
        if (strb_.exists() && keep_.exists() && t_.valid.high()) {
            for (size_t i = 0; i < keep_.nbytes(); ++i)
                if (strb_.bytes()[i] & ~keep_.bytes()[i])
                    throw ProtocolError(
                        cycle, name_,
                        "TSTRB is high for a byte whose TKEEP is low (2.4.3: reserved)");
        }
        return t_.sample(cycle, name_);
    }
    void sample_reset(uint64_t cycle, uint64_t n) { t_.sample_reset(cycle, n, name_); }
    void reset() { t_.reset(); }

  private:
    Channel t_;
    Pin keep_, strb_;
    std::string name_;
};

// Says which control output depends, after the reset, on what registers held before it; "" if none
// does. Real flip-flops wake up holding anything. The inputs are idle all the while.
inline std::string check_reset(const ModelApi& api, const char* clock = "ap_clk",
                               const char* reset_n = "ap_rst_n") {
    constexpr int kModels = 8, kReset = 16, kAfter = 32;
    struct Owned {
        const ModelApi& api;
        Model* model[kModels] = {};
        ~Owned() {
            for (Model* m : model)
                if (m) api.destroy(m);
        }
    } owned{api};
    struct Watched {
        Pin pin[kModels];
        const char* name;
    };
    std::vector<Watched> watched;
    Pin clk[kModels], rst[kModels];
    for (int i = 0; i < kModels; ++i) {
        owned.model[i] = api.create(uint32_t(i), i == 0 ? kZeros : i == 1 ? kOnes : kRandom);
        if (!owned.model[i]) throw std::runtime_error("there is no memory for the model");
        const Signal* list = nullptr;
        const size_t count = api.signals(owned.model[i], &list);
        const Pins pins(list, count);
        clk[i] = pins.need(clock);
        rst[i] = pins.need(reset_n);
        size_t at = 0;
        for (size_t s = 0; s < count; ++s) {
            if (list[s].kind == kInput) Pin(list[s].data, list[s].width).clear();
            const std::string_view name = list[s].name;
            const bool handshake = name.ends_with("VALID") || name.ends_with("READY");
            if (list[s].kind != kOutput || !(handshake || name == "interrupt")) continue;
            if (i == 0) watched.push_back({{}, list[s].name});
            watched[at++].pin[i] = Pin(list[s].data, list[s].width);
        }
    }
    // An assertion may fail while garbage meets the reset: such a model says nothing, unless it is
    // the one that began with zeros or the reset is over.
    bool alive[kModels];
    std::fill_n(alive, kModels, true);
    for (int edge = 0; edge < 2 * (kReset + kAfter); ++edge) {
        const int cycle = edge / 2;
        for (int i = 0; i < kModels; ++i) {
            if (!alive[i]) continue;
            rst[i].set(cycle >= kReset);
            clk[i].set(edge % 2);
            if (!api.eval(owned.model[i])) continue;
            if (i == 0 || cycle >= kReset)
                return std::string("stops in its reset: ") + api.error(owned.model[i]);
            alive[i] = false;
        }
        if (cycle < kReset || edge % 2) continue;
        for (const Watched& w : watched)
            for (int i = 1; i < kModels; ++i)
                if (alive[i] && w.pin[i].get() != w.pin[0].get())
                    return std::string(w.name) + " depends, " + std::to_string(cycle - kReset) +
                           " cycles after the reset, on what registers held before it";
    }
    return "";
}

}  // namespace rtl
}  // namespace pynq_torch
