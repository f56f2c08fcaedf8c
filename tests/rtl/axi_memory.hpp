// A memory behind AXI4 read and write ports that holds its users to the protocol: whole words, 4 KB
// rule, stability until taken, WLAST. Answers come after `latency` cycles, one word a cycle, with
// random pauses of probability `stalls` on every channel.
#pragma once

#include <cstring>
#include <deque>
#include <vector>

#include "bench.hpp"

struct Memory {
    uint64_t base;
    std::vector<uint8_t> bytes;

    uint8_t* at(uint64_t address, uint64_t count) {
        CHECK(address >= base && address + count <= base + bytes.size(), "access to 0x%llx",
              (unsigned long long)address);
        return &bytes[address - base];
    }
};

struct Burst {
    uint64_t address;
    unsigned beats;
    uint64_t when;  // the cycle its first word or its answer may come
};

inline void check_burst(const char* name, uint64_t address, unsigned beats, unsigned size, unsigned type,
                        unsigned nbytes) {
    CHECK((1u << size) == nbytes, "%s: a size of %u bytes on a port of %u", name, 1u << size, nbytes);
    CHECK(type == 1, "%s: burst type %u, expected INCR", name, type);
    CHECK(address % nbytes == 0, "%s: address 0x%llx is no word's", name, (unsigned long long)address);
    CHECK(address % 4096 + beats * nbytes <= 4096, "%s: the burst at 0x%llx crosses 4 KB", name,
          (unsigned long long)address);
}

// Holds what is offered until it is taken.
template <class T>
struct Held {
    bool waiting = false;
    T value{};
    void see(const char* what, bool valid, bool ready, T now) {
        if (waiting) CHECK(valid && now == value, "%s changed before it was taken", what);
        waiting = valid && !ready;
        value = now;
    }
};

struct ReadPort {
    Memory& memory;
    unsigned nbytes;
    CData &arvalid, &arready;
    QData& araddr;
    CData &arlen, &arsize, &arburst, &rvalid, &rready;
    void* rdata;
    CData& rlast;
    double stalls = 0;
    unsigned latency = 1;
    uint32_t max_outstanding = 0, bursts = 0;
    std::deque<Burst> queue;
    unsigned beat = 0;
    Held<uint64_t> held{};

    // As after a reset: nothing asked for, nothing on its way.
    void clear() {
        queue.clear();
        beat = 0;
        held = {};
        arready = rvalid = 0;
    }
    void drive(uint64_t cycle, Random& random) {
        arready = !random.chance(stalls);
        if (!rvalid && !queue.empty() && queue.front().when <= cycle && !random.chance(stalls)) {
            rvalid = 1;
            rlast = beat + 1 == queue.front().beats;
            std::memcpy(rdata, memory.at(queue.front().address + beat * nbytes, nbytes), nbytes);
        }
    }
    void sample(uint64_t cycle) {
        held.see("AR", arvalid, arready, araddr * 256 + arlen);
        if (arvalid && arready) {
            check_burst("read", araddr, arlen + 1u, arsize, arburst, nbytes);
            queue.push_back({araddr, arlen + 1u, cycle + latency});
            ++bursts;
            if (queue.size() > max_outstanding) max_outstanding = queue.size();
        }
        if (rvalid && rready) {
            if (++beat == queue.front().beats) {
                queue.pop_front();
                beat = 0;
            }
            rvalid_next = false;
        } else {
            rvalid_next = rvalid;
        }
    }
    void after() { rvalid = rvalid_next; }
    bool rvalid_next = false;
};

struct WritePort {
    Memory& memory;
    unsigned nbytes;
    CData &awvalid, &awready;
    QData& awaddr;
    CData &awlen, &awsize, &awburst, &wvalid, &wready;
    void* wdata;
    void* wstrb;
    CData &wlast, &bvalid, &bready;
    double stalls = 0;
    unsigned latency = 1;
    uint32_t max_outstanding = 0, bursts = 0;
    std::deque<Burst> queue, answers;
    unsigned beat = 0;
    Held<uint64_t> held{}, held_word{};
    bool bvalid_next = false;

    // As after a reset: nothing asked for, nothing unanswered.
    void clear() {
        queue.clear();
        answers.clear();
        beat = 0;
        held = held_word = {};
        awready = wready = bvalid = 0;
    }
    void drive(uint64_t cycle, Random& random) {
        awready = !random.chance(stalls);
        wready = !queue.empty() && !random.chance(stalls);  // this memory wants the address first
        if (!bvalid && !answers.empty() && answers.front().when <= cycle && !random.chance(stalls))
            bvalid = 1;
    }
    void sample(uint64_t cycle) {
        held.see("AW", awvalid, awready, awaddr * 256 + awlen);
        uint64_t word = 0, strobe = 0;
        std::memcpy(&word, wdata, nbytes < 8 ? nbytes : 8);
        std::memcpy(&strobe, wstrb, nbytes > 8 ? nbytes / 8 : 1);
        held_word.see("W", wvalid, wready, word ^ strobe << 56 ^ uint64_t(wlast) << 55);
        if (wvalid && wready) {
            Burst& burst = queue.front();
            CHECK(wlast == (beat + 1 == burst.beats), "WLAST is %u in word %u of %u", wlast, beat,
                  burst.beats);
            const uint8_t* from = static_cast<const uint8_t*>(wdata);
            for (unsigned lane = 0; lane < nbytes; ++lane) {
                if (strobe >> lane & 1) *memory.at(burst.address + beat * nbytes + lane, 1) = from[lane];
            }
            if (++beat == burst.beats) {
                answers.push_back({0, 0, cycle + latency});
                queue.pop_front();
                beat = 0;
            }
        }
        if (awvalid && awready) {
            check_burst("write", awaddr, awlen + 1u, awsize, awburst, nbytes);
            queue.push_back({awaddr, awlen + 1u, cycle});
            ++bursts;
            if (queue.size() + answers.size() > max_outstanding)
                max_outstanding = queue.size() + answers.size();
        }
        bvalid_next = bvalid && !bready;
        if (bvalid && bready) answers.pop_front();
    }
    void after() { bvalid = bvalid_next; }
};
