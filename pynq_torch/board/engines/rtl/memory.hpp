// When the memory behind the design's AXI ports answers.
//
// Bytes move at once between the shared DDR and the model's signals; this file decides in which
// cycle. Every port is a client of one of the four HP ports. What it asks for is cut into the bursts
// that an HP port passes on ("commands"), which queue for the one DDR controller.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include "memory_map.hpp"
#include "memory_preset.hpp"

namespace pynq_torch {
namespace rtl {

// A sequence that depends on its seed and the run only [Marsaglia, "Xorshift RNGs", 2003].
class Chance {
  public:
    Chance(uint64_t seed, double probability)
        : seed_(seed), limit_(uint64_t(probability * 4294967296.0)) {
        begin_run(0);
    }
    // A sequence of its own for every run: how many numbers were drawn before it does not matter.
    void begin_run(uint64_t number) {
        state_ = (seed_ + 1 + (number << 32)) * 0x9e3779b97f4a7c15ull;
    }
    explicit operator bool() const { return limit_ != 0; }
    bool now() { return limit_ && next() >> 32 < limit_; }
    uint64_t next() {
        state_ ^= state_ << 13;
        state_ ^= state_ >> 7;
        state_ ^= state_ << 17;
        return state_;
    }

  private:
    uint64_t seed_, state_, limit_;
};

// The HP ports and the DDR controller behind them.
class Memory {
  public:
    static constexpr int kHpPorts = 4;
    static constexpr uint64_t kNever = ~uint64_t(0);

    AccessFault fault{};
    AccessFault read_ahead{};  // taken away by who tells the board

    // stalls: share of cycles, 0 to below 1, in which a channel makes the design wait for no reason.
    Memory(MemoryMap& map, const Preset& preset, double clock_hz, double stalls, uint64_t seed)
        : map_(map), preset_(preset), period_ps_(uint64_t(1e12 / clock_hz + 0.5)), stalls_(stalls),
          seed_(seed) {
        if (!(clock_hz >= 1e6 && clock_hz <= 1e9))
            throw std::runtime_error("the PL's clock is not between 1 MHz and 1 GHz");
        if (!(stalls >= 0 && stalls < 1)) throw std::runtime_error("stalls is not in [0, 1)");
        if (ideal()) return;
        const uint64_t port_ps = preset.port_cycles * period_ps_;
        read_ps_ = port_ps + preset.read_latency_ps;
        write_ps_ = port_ps + preset.write_latency_ps;
        ps_per_kb_ = uint64_t(1024e12 / preset.ddr_bytes_per_second + 0.5);
        next_refresh();
    }

    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;

    MemoryMap& map() { return map_; }
    uint64_t cycle() const { return cycle_; }
    const Preset& model() const { return preset_; }
    bool ideal() const { return preset_.hp_bytes == 0; }
    Chance chance(uint64_t which) const { return Chance(seed_ * 1024 + which, stalls_); }

    // Serves what has reached DDR; once a cycle, before the ports drive.
    void tick(uint64_t cycle) {
        cycle_ = cycle;
        if (waiting_ != 0 && cycle * period_ps_ >= free_ps_) serve(cycle * period_ps_);
    }
    bool pending() const { return waiting_ != 0; }
    // A program starts a unit while nothing is under way: from here all is as it always is, so that
    // a run takes the same cycles whatever registers were read before it.
    void begin_run(uint64_t cycle) {
        if (waiting_ != 0 || ideal()) return;
        origin_ps_ = cycle * period_ps_;
        slot_ = phase_ = 0;
        turn_ = 0;
        next_refresh();
    }
    // Forgets all traffic.
    void reset() {
        for (size_t i = 0; i < clients_.size(); ++i) drop(int(i));
    }

    bool faulted() const { return fault.kind != AccessFault::none; }
    // Checks a burst's addresses; true when they answer. The first that does not is kept in `fault`,
    // that of a read just outside a buffer in `read_ahead`. On a board that is as silicon, no memory
    // at an address is an answer and no more: the kernel goes on with it.
    bool allowed(uint64_t cycle, uint64_t address, uint64_t nbytes, bool write, uint32_t port) {
        map_.refresh_grants();
        uint64_t first = 0;
        const AccessFault::Kind kind = map_.check(address, nbytes, first);
        if (kind == AccessFault::none) return true;
        if (kind == AccessFault::guard && !write && map_.just_outside(address, nbytes)) {
            read_ahead = {cycle, first, kind, write, port, 0};
            return true;
        }
        const bool ends = kind != AccessFault::outside || !map_.goes_on();
        if (ends && !faulted()) fault = {cycle, first, kind, write, port, 0};
        return false;
    }

    // ---- for the ports ----

    // Joins HP port `hp`. The read FIFO counts for each client by itself: an interconnect buffers, so
    // that a design which waits on one port cannot block another's.
    int join(int hp) {
        if (hp < 0 || hp >= kHpPorts)
            throw std::runtime_error("there is no HP port " + std::to_string(hp));
        clients_.emplace_back();
        clients_.back().hp = &hp_[hp];
        return int(clients_.size()) - 1;
    }

    bool read_room(int client) const {
        return clients_[size_t(client)].reads.size() < preset_.waiting_reads;
    }
    // A read command: `bytes` in DDR, that come as `words`. Once served, *arrival is the cycle of the
    // first word; the next ones follow a cycle each.
    void read(int client, uint64_t cycle, uint32_t bytes, uint32_t words, uint64_t* arrival) {
        if (ideal()) {
            *arrival = cycle + 1;
            return;
        }
        *arrival = kNever;
        clients_[size_t(client)].reads.push_back({cycle * period_ps_, bytes, words, arrival});
        ++waiting_;
    }
    // The design took words out of the read FIFO.
    void taken(int client, uint32_t words) { clients_[size_t(client)].read_words -= words; }

    // Whether the HP port takes `words` more from this client in this cycle.
    bool write_room(int client, uint64_t cycle, uint32_t words) const {
        if (ideal()) return true;
        const Client& c = clients_[size_t(client)];
        return c.hp->write_free <= cycle * preset_.hp_bytes &&
               c.write_words + words <= std::max(preset_.fifo_words, words);
    }
    // `bytes` of data passed the HP port, which began `words` new ones.
    void passed(int client, uint64_t cycle, uint32_t bytes, uint32_t words) {
        if (ideal()) return;
        Client& c = clients_[size_t(client)];
        c.hp->write_free = std::max(c.hp->write_free, cycle * preset_.hp_bytes) + bytes;
        c.write_words += words;
    }
    // A write command whose `words` have all passed. Once in DDR, *arrival is the cycle from which
    // its response can be given.
    void write(int client, uint64_t cycle, uint32_t bytes, uint32_t words, uint64_t* arrival) {
        if (ideal()) {
            *arrival = cycle + 1;
            return;
        }
        *arrival = kNever;
        clients_[size_t(client)].writes.push_back({cycle * period_ps_, bytes, words, arrival});
        ++waiting_;
    }
    // Forgets a client's traffic.
    void drop(int client) {
        Client& c = clients_[size_t(client)];
        waiting_ -= c.reads.size() + c.writes.size();
        c.reads.clear();
        c.writes.clear();
        c.read_words = c.write_words = 0;
    }

  private:
    struct Command {
        uint64_t ready_ps;
        uint32_t bytes, words;
        uint64_t* arrival;
    };
    // A queue that keeps its memory: at most the commands of a few bursts are ever in it.
    class Queue {
      public:
        size_t size() const { return tail_ - head_; }
        bool empty() const { return head_ == tail_; }
        Command& front() { return slots_[head_ & (slots_.size() - 1)]; }
        void push_back(const Command& command) {
            if (size() == slots_.size()) grow();
            slots_[tail_++ & (slots_.size() - 1)] = command;
        }
        void pop_front() { ++head_; }
        void clear() { head_ = tail_ = 0; }

      private:
        void grow() {
            std::vector<Command> more(slots_.size() * 2);
            for (size_t i = 0; i < size(); ++i) more[i] = slots_[(head_ + i) & (slots_.size() - 1)];
            tail_ = size();
            head_ = 0;
            slots_.swap(more);
        }
        std::vector<Command> slots_ = std::vector<Command>(64);
        size_t head_ = 0, tail_ = 0;
    };
    struct Hp {
        uint64_t read_free = 0;   // cycle
        uint64_t write_free = 0;  // in bytes since cycle 0 at the port's full rate
    };
    struct Client {
        Hp* hp = nullptr;
        Queue reads, writes;
        uint32_t read_words = 0;   // asked of DDR, not yet taken by the design
        uint32_t write_words = 0;  // passed, not yet in DDR
    };

    // The controller takes turns among the queues. It decides only when it is free, so that a later
    // command of a quiet port goes before the backlog of a busy one.
    void serve(uint64_t now_ps) {
        while (waiting_ != 0) {
            const size_t queues = 2 * clients_.size();
            uint64_t earliest = kNever;
            for (size_t i = 0; i < queues; ++i) {
                const Command* c = head(i, now_ps);
                if (c) earliest = std::min(earliest, c->ready_ps);
            }
            if (earliest == kNever) return;  // all wait for room in a FIFO
            const uint64_t start = after_refresh(std::max(earliest, free_ps_));
            if (start > now_ps) return;
            for (size_t i = 0; i < queues; ++i) {
                const size_t queue = (turn_ + i) % queues;
                const Command* c = head(queue, now_ps);
                if (!c || c->ready_ps > start) continue;
                execute(queue, start);
                turn_ = (queue + 1) % queues;
                break;
            }
        }
    }
    // The first command of a queue; nullptr when there is none that DDR could take.
    const Command* head(size_t queue, uint64_t now_ps) {
        Client& c = clients_[queue / 2];
        Queue& q = queue % 2 ? c.writes : c.reads;
        if (q.empty()) return nullptr;
        if (queue % 2 == 0 && c.read_words + q.front().words > preset_.fifo_words) {
            q.front().ready_ps = std::max(q.front().ready_ps, now_ps);
            return nullptr;
        }
        return &q.front();
    }
    uint64_t after_refresh(uint64_t start) {
        if (start < refresh_) return start;
        // Refreshes during which nobody asked for anything have passed unseen.
        if (start >= refresh_ + preset_.refresh_every_ps)
            slot_ += (start - refresh_) / preset_.refresh_every_ps - 1;
        while (start >= refresh_) {
            free_ps_ = std::max(free_ps_, refresh_) + preset_.refresh_ps;
            start = std::max(start, free_ps_);
            next_refresh();
        }
        return start;
    }
    // One in each tREFI, as the standard allows to postpone it, at no fixed place: a design whose
    // bursts take a whole fraction of tREFI would otherwise fall into step with it.
    void next_refresh() {
        Chance place(++slot_, 0);
        place.next();
        refresh_ = origin_ps_ + slot_ * preset_.refresh_every_ps +
                   ((place.next() >> 32) * preset_.refresh_every_ps >> 32);
    }
    void execute(size_t queue, uint64_t start) {
        Client& c = clients_[queue / 2];
        Queue& q = queue % 2 ? c.writes : c.reads;
        const Command command = q.front();
        q.pop_front();
        --waiting_;
        free_ps_ = start + (command.bytes * ps_per_kb_ >> 10);
        if (queue % 2 == 0) {
            const uint64_t first = crossing(start + read_ps_);
            *command.arrival = std::max(first, c.hp->read_free);
            c.hp->read_free = *command.arrival + command.words;
            c.read_words += command.words;
        } else {
            *command.arrival = std::max(crossing(free_ps_ + write_ps_), cycle_);
            c.write_words -= command.words;
        }
    }
    // The cycle of the PL's clock at which something arrives. The clocks have no fixed phase: here it
    // moves evenly through the period, so that averages keep the fraction of a cycle.
    uint64_t crossing(uint64_t ps) {
        phase_ += 0x9e3779b9u;
        return (ps + (uint64_t(phase_) * period_ps_ >> 32)) / period_ps_;
    }

    MemoryMap& map_;
    const Preset& preset_;
    uint64_t period_ps_;
    double stalls_;
    uint64_t seed_;
    uint64_t ps_per_kb_ = 0;
    uint64_t read_ps_ = 0, write_ps_ = 0;  // latencies at this clock
    Hp hp_[kHpPorts];
    std::deque<Client> clients_;
    size_t waiting_ = 0;  // commands in all queues
    size_t turn_ = 0;
    uint64_t cycle_ = 0;
    uint64_t free_ps_ = 0;    // DDR has done what it was given
    uint64_t origin_ps_ = 0;  // refreshes are counted from here
    uint64_t refresh_ = 0;    // when the next one begins
    uint64_t slot_ = 0;       // its number
    uint32_t phase_ = 0;
};

}  // namespace rtl
}  // namespace pynq_torch
