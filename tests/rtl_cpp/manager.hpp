// An AXI4 manager that asks for anything the standard allows, and checks every answer.
//
// Addresses and lanes are computed as section A3.4.1 of ARM IHI 0022H writes them, on purpose
// differently from the code under test.
#pragma once

#include <algorithm>
#include <cstdio>
#include <deque>
#include <map>
#include <random>
#include <stdexcept>
#include <string>
#include <vector>

#include "fake_model.hpp"

namespace bench {

struct Request {
    bool write = false;
    uint64_t start = 0;
    uint32_t length = 1, number_bytes = 4, burst = kIncr, id = 0;
    std::vector<std::vector<uint8_t>> data;
    std::vector<std::vector<bool>> strobes;
    uint32_t done = 0;

    uint64_t aligned() const { return start / number_bytes * number_bytes; }
    uint64_t wrap_boundary() const {
        return start / (number_bytes * length) * (number_bytes * length);
    }
    // Address_N of the standard, n from 1.
    uint64_t address(uint32_t n) const {
        if (n == 1 || burst == kFixed) return start;
        uint64_t a = aligned() + uint64_t(n - 1) * number_bytes;
        if (burst == kWrap && a >= wrap_boundary() + uint64_t(number_bytes) * length)
            a -= uint64_t(number_bytes) * length;
        return a;
    }
    // Byte addresses that beat n covers.
    uint64_t first_byte(uint32_t n) const { return address(n); }
    uint64_t last_byte(uint32_t n) const {
        return (burst == kFixed || n == 1 ? aligned() : address(n)) + number_bytes - 1;
    }
    uint64_t low() const { return burst == kWrap ? wrap_boundary() : start; }
    uint64_t high() const {
        if (burst == kFixed) return aligned() + number_bytes;
        return (burst == kWrap ? wrap_boundary() : aligned()) + uint64_t(number_bytes) * length;
    }
};

class Manager {
  public:
    uint64_t bytes_read = 0, bytes_written = 0, beats_read = 0, beats_written = 0, reads = 0,
             writes = 0;
    double pause = 0;  // chance of a cycle without VALID or READY, for each channel

    Manager(FakeModel& model, const std::string& prefix, uint32_t width, uint64_t seed)
        : bus_(width / 8), random_(seed), pins_(model.pins()), prefix_(prefix) {
        for (const char* name :
             {"ARVALID", "ARREADY", "ARADDR", "ARLEN",  "ARSIZE",  "ARBURST", "ARID",   "AWVALID",
              "AWREADY", "AWADDR",  "AWLEN",  "AWSIZE", "AWBURST", "AWID",    "WVALID", "WREADY",
              "WDATA",   "WSTRB",   "WLAST",  "BVALID", "BREADY",  "BRESP",   "BID",    "RVALID",
              "RREADY",  "RDATA",   "RLAST",  "RRESP",  "RID"})
            pin_[name] = pins_.find(prefix_ + "_" + name);
    }
    const Pin& pin(const char* name) { return pin_.at(name); }

    void ask(const Request& t) {
        if (t.write) {
            addresses_[1].push_back(t);
            data_.push_back(t);
        } else {
            addresses_[0].push_back(t);
        }
        under_way_.push_back(t);
    }
    size_t outstanding() const { return under_way_.size(); }
    size_t outstanding(bool write) const {
        return size_t(std::count_if(under_way_.begin(), under_way_.end(),
                                    [&](const Request& t) { return t.write == write; }));
    }
    // Whether a new transfer would touch bytes of one under way, where one of them writes.
    // Those of them whose address was taken: the memory owes their data or their response.
    size_t owed() const {
        size_t n = 0;
        for (const auto& direction : accepted_)
            for (const auto& [id, requests] : direction) n += requests.size();
        return n;
    }
    bool conflicts(const Request& t) const {
        return std::any_of(under_way_.begin(), under_way_.end(), [&](const Request& o) {
            return (t.write || o.write) && t.low() < o.high() && o.low() < t.high();
        });
    }

    void drive() {
        for (int w = 0; w < 2; ++w) {
            const std::string ax = w ? "AW" : "AR";
            auto at = [&](const char* what) { return pin_.at((ax + what).c_str()); };
            if (!valid_[w] && !addresses_[w].empty() && !rest()) {
                const Request& t = addresses_[w].front();
                valid_[w] = true;
                at("ADDR").set(t.start);
                at("LEN").set(t.length - 1);
                uint32_t size = 0;
                while ((1u << size) < t.number_bytes) ++size;
                at("SIZE").set(size);
                at("BURST").set(t.burst);
                at("ID").set(t.id);
            }
            at("VALID").set(valid_[w]);
        }
        if (!valid_[2] && !data_.empty() && !rest()) {
            const Request& t = data_.front();
            const uint32_t n = t.done + 1;
            const uint64_t base = t.first_byte(n) / bus_ * bus_;
            std::vector<uint8_t> lanes(bus_, uint8_t(random_())), strobe((bus_ + 7) / 8, 0);
            for (uint64_t a = t.first_byte(n); a <= t.last_byte(n); ++a) {
                lanes[size_t(a - base)] = t.data[t.done][size_t(a - t.first_byte(n))];
                if (t.strobes[t.done][size_t(a - t.first_byte(n))])
                    strobe[size_t(a - base) / 8] |= uint8_t(1u << ((a - base) % 8));
            }
            std::memcpy(pin("WDATA").bytes(), lanes.data(), bus_);
            std::memcpy(pin("WSTRB").bytes(), strobe.data(), strobe.size());
            pin("WLAST").set(n == t.length);
            valid_[2] = true;
        }
        pin("WVALID").set(valid_[2]);
        pin("RREADY").set(!rest());
        pin("BREADY").set(!rest());
    }

    // `memory`: what the bytes from `base` on must hold.
    void sample(std::vector<uint8_t>& memory, uint64_t base) {
        for (int w = 0; w < 2; ++w) {
            if (!valid_[w] || !pin(w ? "AWREADY" : "ARREADY").get()) continue;
            accepted_[w][addresses_[w].front().id].push_back(addresses_[w].front());
            addresses_[w].pop_front();
            valid_[w] = false;
        }
        if (valid_[2] && pin("WREADY").get()) {
            ++beats_written;
            valid_[2] = false;
            if (++data_.front().done == data_.front().length) {
                sent_.push_back(data_.front());
                data_.pop_front();
            }
        }
        if (pin("RVALID").get() && pin("RREADY").get()) read_beat(memory, base);
        if (pin("BVALID").get() && pin("BREADY").get()) answered(memory, base);
    }

  private:
    [[noreturn]] void wrong(const std::string& what) const {
        throw std::runtime_error(prefix_ + ": " + what);
    }
    bool rest() { return pause > 0 && std::uniform_real_distribution<>(0, 1)(random_) < pause; }

    void read_beat(const std::vector<uint8_t>& memory, uint64_t base) {
        const uint32_t id = uint32_t(pin("RID").get());
        auto& queue = accepted_[0][id];
        if (queue.empty())
            wrong("a read beat of ID " + std::to_string(id) + " that nobody asked for");
        Request& t = queue.front();
        const uint32_t n = ++t.done;
        const uint64_t lanes = t.first_byte(n) / bus_ * bus_;
        if (pin("RRESP").get() != kOkay) wrong("RRESP is not OKAY");
        if (pin("RLAST").get() != (n == t.length))
            wrong("RLAST is wrong on beat " + std::to_string(n));
        for (uint64_t a = t.first_byte(n); a <= t.last_byte(n); ++a, ++bytes_read) {
            const uint8_t got = pin("RDATA").bytes()[a - lanes], want = memory[size_t(a - base)];
            if (got != want) {
                char text[128];
                std::snprintf(text, sizeof text,
                              "byte at 0x%llx is %02x, expected %02x (beat %u of %u)",
                              static_cast<unsigned long long>(a), got, want, n, t.length);
                wrong(text);
            }
        }
        ++beats_read;
        if (n < t.length) return;
        ++reads;
        forget(t);
        queue.pop_front();
    }
    void answered(std::vector<uint8_t>& memory, uint64_t base) {
        const uint32_t id = uint32_t(pin("BID").get());
        if (accepted_[1][id].empty())
            wrong("a response of ID " + std::to_string(id) + " that nobody waits for");
        const auto t =
            std::find_if(sent_.begin(), sent_.end(), [&](const Request& s) { return s.id == id; });
        if (t == sent_.end()) wrong("a response before all data was written");
        if (t->start != accepted_[1][id].front().start) wrong("responses of one ID out of order");
        if (pin("BRESP").get() != kOkay) wrong("BRESP is not OKAY");
        for (uint32_t n = 1; n <= t->length; ++n)
            for (uint64_t a = t->first_byte(n); a <= t->last_byte(n); ++a)
                if (t->strobes[n - 1][size_t(a - t->first_byte(n))]) {
                    memory[size_t(a - base)] = t->data[n - 1][size_t(a - t->first_byte(n))];
                    ++bytes_written;
                }
        ++writes;
        forget(*t);
        sent_.erase(t);
        accepted_[1][id].pop_front();
    }
    void forget(const Request& t) {
        const auto at = std::find_if(under_way_.begin(), under_way_.end(), [&](const Request& o) {
            return o.write == t.write && o.id == t.id && o.start == t.start && o.length == t.length;
        });
        under_way_.erase(at);
    }

    uint32_t bus_;
    std::mt19937_64 random_;
    Pins pins_;
    std::string prefix_;
    std::map<std::string, Pin> pin_;
    bool valid_[3] = {false, false, false};  // AR, AW, W
    std::deque<Request> addresses_[2], data_, sent_, under_way_;
    std::map<uint32_t, std::deque<Request>> accepted_[2];
};

}  // namespace bench
