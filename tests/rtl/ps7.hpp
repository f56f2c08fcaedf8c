// The PS of a Zynq-7000 as its PL sees it: a master that reads and writes registers over GP0, and a
// memory behind HP ports. Both keep their users to AXI3, wait at random on every channel, and use what
// AXI3 allows: answers of different IDs come in any order and interleaved, words before addresses.
#pragma once

#include <vector>

#include "axi_memory.hpp"

struct HpSignals {
    CData &arvalid, &arready, &arid;
    IData& araddr;
    CData &arlen, &arsize, &arburst, &rvalid, &rready, &rid;
    QData& rdata;
    CData &rresp, &rlast, &awvalid, &awready, &awid;
    IData& awaddr;
    CData &awlen, &awsize, &awburst, &wvalid, &wready, &wid;
    QData& wdata;
    CData &wstrb, &wlast, &bvalid, &bready, &bid, &bresp;
};

struct HpBurst {
    unsigned id, beats, nbytes;
    uint64_t address, when;
    unsigned beat = 0;
};

class HpPort {
  public:
    HpPort(HpSignals signals, Memory& memory) : pin(signals), memory_(memory) {}

    void drive(uint64_t cycle, Random& random) {
        pin.arready = !random.chance(stalls);
        pin.awready = !random.chance(stalls);
        pin.wready = !random.chance(stalls);
        if (!pin.rvalid && !random.chance(stalls)) {
            if (const int index = oldest(reads_, cycle, random); index >= 0) {
                HpBurst& burst = reads_[index];
                const unsigned lane = (burst.address + burst.beat * burst.nbytes) % 8;
                pin.rdata = 0xEEEEEEEEEEEEEEEE;
                std::memcpy(reinterpret_cast<uint8_t*>(&pin.rdata) + lane,
                            memory_.at(burst.address + burst.beat * burst.nbytes, burst.nbytes), burst.nbytes);
                pin.rvalid = 1;
                pin.rid = burst.id;
                pin.rlast = burst.beat + 1 == burst.beats;
                pin.rresp = error;
            }
        }
        if (!pin.bvalid && !random.chance(stalls)) {
            if (const int index = oldest(answers_, cycle, random); index >= 0) {
                pin.bvalid = 1;
                pin.bid = answers_[index].id;
                pin.bresp = error;
            }
        }
    }
    // After the outputs of the PL have settled, before the edge.
    void sample(uint64_t cycle, Random& random) {
        held_ar_.see("AR", pin.arvalid, pin.arready, uint64_t(pin.araddr) << 16 | pin.arlen << 8 | pin.arid);
        held_aw_.see("AW", pin.awvalid, pin.awready, uint64_t(pin.awaddr) << 16 | pin.awlen << 8 | pin.awid);
        held_w_.see("W", pin.wvalid, pin.wready, pin.wdata ^ uint64_t(pin.wstrb) << 48 ^ pin.wlast);
        if (pin.arvalid && pin.arready) {
            reads_.push_back(request("read", pin.arid, pin.araddr, pin.arlen, pin.arsize, pin.arburst));
            reads_.back().when = cycle + 1 + random.below(latency);
        }
        if (pin.wvalid && pin.wready) word();
        if (pin.awvalid && pin.awready)
            writes_.push_back(request("write", pin.awid, pin.awaddr, pin.awlen, pin.awsize, pin.awburst));
        if (!writes_.empty() && writes_.front().beat == writes_.front().beats) {
            answers_.push_back(writes_.front());
            answers_.back().when = cycle + 1 + random.below(latency);
            writes_.pop_front();
        }
        taken_r_ = pin.rvalid && pin.rready;
        taken_b_ = pin.bvalid && pin.bready;
    }
    // After the edge.
    void after() {
        if (taken_r_) {
            HpBurst& burst = *find(reads_, pin.rid);
            if (++burst.beat == burst.beats) reads_.erase(find(reads_, pin.rid));
            pin.rvalid = 0;
        }
        if (taken_b_) {
            answers_.erase(find(answers_, pin.bid));
            pin.bvalid = 0;
        }
    }
    bool idle() const { return reads_.empty() && writes_.empty() && answers_.empty(); }

    HpSignals pin;
    double stalls = 0;
    unsigned latency = 1, longest = 0, ids = 0;  // ids: a bit for each that was seen
    unsigned error = 0;                          // what every answer says

  private:
    HpBurst request(const char* what, unsigned id, uint64_t address, unsigned len, unsigned size, unsigned type) {
        CHECK(size == 2 || size == 3, "%s: a size of %u bytes", what, 1u << size);
        CHECK(len < 16, "%s: AXI3 has no burst of %u", what, len + 1);
        check_burst(what, address, len + 1, size, type, 1u << size);
        if (len + 1 > longest) longest = len + 1;
        ids |= 1u << id;
        return {id, len + 1, 1u << size, address, 0};
    }
    void word() {
        CHECK(!writes_.empty(), "a word before its address");
        HpBurst& burst = writes_.front();
        CHECK(pin.wid == burst.id, "WID is %u in a burst of %u", pin.wid, burst.id);
        CHECK(pin.wlast == (burst.beat + 1 == burst.beats), "WLAST is %u in word %u of %u", pin.wlast,
              burst.beat + 1, burst.beats);
        const uint64_t address = burst.address + burst.beat * burst.nbytes, base = address & ~7ull;
        const unsigned lanes = ((1u << burst.nbytes) - 1) << address % 8;
        CHECK((pin.wstrb & ~lanes) == 0, "WSTRB 0x%x beside the lanes 0x%x", pin.wstrb, lanes);
        for (unsigned lane = 0; lane < 8; ++lane)
            if (pin.wstrb >> lane & 1) *memory_.at(base + lane, 1) = uint8_t(pin.wdata >> 8 * lane);
        ++burst.beat;
    }
    static std::deque<HpBurst>::iterator find(std::deque<HpBurst>& queue, unsigned id) {
        for (auto burst = queue.begin(); burst != queue.end(); ++burst)
            if (burst->id == id) return burst;
        fail("an answer to nothing, ID %u", id);
    }
    // The oldest burst of an ID by chance; -1 where none may be answered yet.
    static int oldest(std::deque<HpBurst>& queue, uint64_t cycle, Random& random) {
        if (queue.empty()) return -1;
        const unsigned id = queue[random.below(queue.size())].id;
        const auto burst = find(queue, id);
        return burst->when <= cycle ? int(burst - queue.begin()) : -1;
    }
    Memory& memory_;
    std::deque<HpBurst> reads_, writes_, answers_;
    Held<uint64_t> held_ar_{}, held_aw_{}, held_w_{};
    bool taken_r_ = false, taken_b_ = false;
};

struct GpSignals {
    CData& arvalid;
    CData& arready;
    SData& arid;
    IData& araddr;
    CData &arlen, &rvalid, &rready;
    SData& rid;
    IData& rdata;
    CData &rresp, &rlast, &awvalid, &awready;
    SData& awid;
    IData& awaddr;
    CData &wvalid, &wready;
    IData& wdata;
    CData &wstrb, &wlast, &bvalid, &bready;
    SData& bid;
    CData& bresp;
};

class Gp {
  public:
    Gp(GpSignals signals, Random& random, std::function<void()> cycle)
        : pin(signals), random_(random), cycle_(std::move(cycle)) {}

    void settled() {
        aw_ = pin.awvalid && pin.awready;
        w_ = pin.wvalid && pin.wready;
        b_ = pin.bvalid && pin.bready;
        ar_ = pin.arvalid && pin.arready;
        r_ = pin.rvalid && pin.rready;
        now_ = {pin.rdata, pin.rresp, pin.rid, pin.rlast, pin.bresp, pin.bid};
    }
    // Writes a burst; returns its answer.
    unsigned write(uint32_t address, std::vector<uint32_t> words, unsigned strobes = 15) {
        const unsigned id = random_.below(4096);
        pin.awaddr = address;
        pin.awid = id;
        pin.wstrb = strobes;
        bool aw = false;
        for (size_t sent = 0, i = 0;; ++i) {
            CHECK(i < 600, "a write without an answer, 0x%x", address);
            pin.awvalid = !aw && (pin.awvalid || !random_.chance(stalls));
            pin.wvalid = sent < words.size() && (pin.wvalid || !random_.chance(stalls));
            pin.wdata = pin.wvalid ? words[sent] : random_.bits();
            pin.wlast = sent + 1 == words.size();
            pin.bready = !random_.chance(stalls);
            cycle_();
            aw |= aw_;
            if (w_) ++sent;
            if (w_) pin.wvalid = 0;
            if (b_) {
                CHECK(aw && sent == words.size(), "an answer after %zu of %zu words", sent, words.size());
                break;
            }
        }
        pin.awvalid = pin.wvalid = pin.bready = 0;
        CHECK(now_.bid == id, "BID is 0x%x, expected 0x%x", now_.bid, id);
        return now_.bresp;
    }
    // Reads a burst; the answer of its last word is in `response`.
    std::vector<uint32_t> burst(uint32_t address, unsigned count) {
        const unsigned id = random_.below(4096);
        std::vector<uint32_t> words;
        bool ar = false;
        pin.araddr = address;
        pin.arid = id;
        pin.arlen = count - 1;
        for (int i = 0; words.size() < count; ++i) {
            CHECK(i < 600, "a read without an answer, 0x%x", address);
            pin.arvalid = !ar && (pin.arvalid || !random_.chance(stalls));
            pin.rready = !random_.chance(stalls);
            cycle_();
            ar |= ar_;
            if (!r_) continue;
            words.push_back(now_.rdata);
            CHECK(now_.rid == id && now_.rlast == (words.size() == count), "RID 0x%x or RLAST %u", now_.rid,
                  now_.rlast);
        }
        pin.arvalid = pin.rready = 0;
        response = now_.rresp;
        return words;
    }
    uint32_t read(uint32_t address) { return burst(address, 1)[0]; }

    GpSignals pin;
    double stalls = 0;
    unsigned response = 0;

  private:
    struct Answers {
        uint32_t rdata;
        unsigned rresp, rid, rlast, bresp, bid;
    };
    Random& random_;
    std::function<void()> cycle_;
    bool aw_ = false, w_ = false, b_ = false, ar_ = false, r_ = false;
    Answers now_{};
};
