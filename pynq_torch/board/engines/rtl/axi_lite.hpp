// The processor's side of an AXI4-Lite interface: one access at a time, as the GP port makes them.
#pragma once

#include <random>
#include <string>

#include "checker.hpp"
#include "layout.hpp"
#include "pins.hpp"
#include "trace.hpp"

namespace pynq_torch {
namespace rtl {

class LiteManager : public Port {
  public:
    // Cycles after which a subordinate that does not answer has frozen the processor.
    static constexpr uint64_t kPatience = 100'000;
    // An answer is given this late: what the access changed (an interrupt output) has settled.
    static constexpr uint64_t kSettle = 2;

    LiteManager(const Pins& pins, const std::string& prefix, const std::string& name, uint16_t index,
                TraceRing* trace)
        : name_(name), index_(index), trace_(trace), checker_(pins, prefix, name) {
        auto need = [&](const char* suffix) { return pins.need(prefix + "_" + suffix); };
        auto find = [&](const char* suffix) { return pins.find(prefix + "_" + suffix); };
        awaddr_ = need("AWADDR"), awvalid_ = need("AWVALID"), awready_ = need("AWREADY");
        wdata_ = need("WDATA"), wstrb_ = find("WSTRB"), wvalid_ = need("WVALID"), wready_ = need("WREADY");
        bresp_ = find("BRESP"), bvalid_ = need("BVALID"), bready_ = need("BREADY");
        araddr_ = need("ARADDR"), arvalid_ = need("ARVALID"), arready_ = need("ARREADY");
        rdata_ = need("RDATA"), rresp_ = find("RRESP"), rvalid_ = need("RVALID"), rready_ = need("RREADY");
        lanes_ = wdata_.width / 32;
    }

    const std::string& name() const { return name_; }
    bool idle() const { return phase_ == kIdle; }
    // The access is over, with its answer in result() and value().
    bool answered() const { return phase_ == kOver; }
    void take() { phase_ = kIdle; }
    Result result() const { return result_; }
    uint32_t value() const { return value_; }
    uint32_t address() const { return address_; }
    // In this cycle a write was taken: the address and its word.
    bool accepted_write() const { return accepted_; }
    uint32_t word() const { return value_; }

    void write(uint32_t address, uint32_t value, uint64_t cycle, bool traced = true) {
        begin(kWriting, address, cycle);
        value_ = value;
        traced_ = traced;
    }
    void read(uint32_t address, uint64_t cycle) {
        begin(kReading, address, cycle);
        traced_ = true;
    }

    void drive(uint64_t) override {
        if (phase_ == kIdle && clean_) return;
        const bool writing = phase_ == kWriting, reading = phase_ == kReading;
        awvalid_.set_bit(writing && !address_done_);
        wvalid_.set_bit(writing && !data_done_);
        bready_.set_bit(writing);
        arvalid_.set_bit(reading && !address_done_);
        rready_.set_bit(reading && address_done_);
        if (writing) {
            awaddr_.set(address_);
            const uint32_t lane = lanes_ > 1 ? (address_ >> 2) & (lanes_ - 1) : 0;
            wdata_.set(uint64_t(value_) << (32 * lane));
            wstrb_.set(uint64_t(0xf) << (4 * lane));
        }
        if (reading) araddr_.set(address_);
        clean_ = phase_ == kIdle;
    }

    void sample(uint64_t cycle) override {
        accepted_ = false;
        if (phase_ == kIdle) return;
        checker_.sample(cycle);
        if (phase_ == kSettling) {
            if (cycle >= settled_) phase_ = kOver;
            return;
        }
        if (phase_ == kOver) return;
        if (phase_ == kWriting) {
            const bool before = address_done_ && data_done_;
            if (!address_done_ && awready_.high()) address_done_ = true, last_handshake = cycle;
            if (!data_done_ && wready_.high()) data_done_ = true, last_handshake = cycle;
            accepted_ = address_done_ && data_done_ && !before;
            if (bvalid_.high()) end(cycle, uint32_t(bresp_.get()));
        } else {
            if (!address_done_) {
                if (arready_.high()) address_done_ = true, last_handshake = cycle;
            } else if (rvalid_.high()) {
                const uint32_t lane = lanes_ > 1 ? (address_ >> 2) & (lanes_ - 1) : 0;
                value_ = uint32_t(rdata_.get() >> (32 * lane));
                end(cycle, uint32_t(rresp_.get()));
            }
        }
        if ((phase_ == kWriting || phase_ == kReading) && cycle - begin_ > kPatience) {
            result_ = kNoAnswer;
            phase_ = kOver;
        }
    }
    void sample_reset(uint64_t cycle, uint64_t n) override { checker_.sample_reset(cycle, n); }
    bool pending() const override { return phase_ != kIdle; }
    void reset() override {
        phase_ = kIdle;
        accepted_ = clean_ = false;
        checker_.reset();
    }

  private:
    enum Phase { kIdle, kWriting, kReading, kSettling, kOver };

    void begin(Phase phase, uint32_t address, uint64_t cycle) {
        phase_ = phase;
        address_ = address;
        address_done_ = data_done_ = false;
        begin_ = cycle;
    }
    void end(uint64_t cycle, uint32_t response) {
        if (trace_ && traced_) {
            TransactionRecord record{};
            record.begin = begin_, record.first = record.end = cycle;
            record.address = address_, record.bytes = 4, record.beats = 1, record.value = value_;
            record.port = index_, record.resp = uint8_t(response), record.size = 2, record.burst = 1;
            record.kind = uint8_t(phase_ == kReading ? Transfer::register_read : Transfer::register_write);
            trace_->put(record);
        }
        last_handshake = cycle;
        result_ = Result(response & 2 ? response : 0);
        // A read changes little (a clear-on-read bit): it need not wait.
        settled_ = cycle + kSettle;
        phase_ = kSettling;
    }

    std::string name_;
    uint16_t index_;
    TraceRing* trace_;
    LiteChecker checker_;
    Pin awaddr_, awvalid_, awready_, wdata_, wstrb_, wvalid_, wready_, bresp_, bvalid_, bready_;
    Pin araddr_, arvalid_, arready_, rdata_, rresp_, rvalid_, rready_;
    uint32_t lanes_ = 1;
    Phase phase_ = kIdle;
    bool address_done_ = false, data_done_ = false, accepted_ = false, clean_ = false;
    bool traced_ = true;
    uint32_t address_ = 0, value_ = 0;
    uint64_t begin_ = 0, settled_ = 0;
    Result result_ = Result::kAnswered;
};

}  // namespace rtl
}  // namespace pynq_torch
