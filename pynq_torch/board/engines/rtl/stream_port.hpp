// AXI4-Stream between a unit and a ring: one beat a cycle, with the pace of what stands behind it.
//
// The other end of a ring is a process that knows no clock. Whether it was given the processor in
// time must not show in the counts, so a port says when it waits for that process in the middle of a
// packet (starved, choked): the clock then stands still for a moment. Between packets nothing is
// expected, and the unit simply sees no TVALID, or no TREADY.
#pragma once

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>

#include "checker.hpp"
#include "memory.hpp"
#include "pins.hpp"
#include "ring_end.hpp"
#include "stream_flow.hpp"

namespace pynq_torch {
namespace rtl {

struct StreamPins {
    Pin data, valid, ready, keep, strb, last, user, id, dest;

    StreamPins(const Pins& pins, const std::string& prefix)
        : data(pins.find(prefix + "_TDATA")), valid(pins.need(prefix + "_TVALID")),
          ready(pins.need(prefix + "_TREADY")), keep(pins.find(prefix + "_TKEEP")),
          strb(pins.find(prefix + "_TSTRB")), last(pins.find(prefix + "_TLAST")),
          user(pins.find(prefix + "_TUSER")), id(pins.find(prefix + "_TID")),
          dest(pins.find(prefix + "_TDEST")) {}
};

class StreamPort : public Port {
  public:
    // `local`: both ends of the ring belong to units of this clock.
    StreamPort(std::string name, int index, bool local) : name_(std::move(name)), index_(index), local_(local) {}
    const std::string& name() const { return name_; }
    int index() const { return index_; }
    // The other end's process is expected to act, and has not yet.
    virtual bool waits_for_process() = 0;
    // That process is running, or is about to wake up: it only has to be given a processor.
    virtual bool process_works() = 0;
    // `mailbox` of the other end's process (engine.hpp), which says what it is doing.
    void watch(const void* mailbox) {
        constexpr size_t kStateAt = 12;  // Mailbox::state
        if (mailbox)
            peer_ = reinterpret_cast<const std::atomic<uint32_t>*>(static_cast<const char*>(mailbox) + kStateAt);
    }
    // The unit waits on this stream, for whatever reason, and its pins say so.
    virtual bool blocked() const = 0;
    // There is nothing that the unit could take, whether or not it asks just now.
    virtual bool hungry() const { return false; }
    virtual bool waits_for_data() const = 0;
    // A clock would move a beat.
    virtual bool can_move() = 0;
    // A clock would show the unit what it has not seen: a beat, or room for one.
    virtual bool has_news() = 0;
    // The cycle in which something came last from outside, a first beat or room.
    uint64_t news() const { return news_; }
    // Whether an input of the unit has changed since this was asked last, apart from stalls.
    bool turned() { return std::exchange(turned_, false); }
    virtual void flush() = 0;
    // Records what has not ended, as the last thing.
    virtual void cut() = 0;

  protected:
    enum : uint32_t { kPeerBooting = 0, kPeerRunning = 2, kPeerWaitsRead = 3, kPeerWaitsWrite = 4 };
    uint32_t peer_state() const { return peer_ ? peer_->load(std::memory_order_acquire) : ~0u; }
    static uint64_t lanes(size_t nbytes) { return nbytes >= 64 ? ~0ull : (uint64_t(1) << nbytes) - 1; }

    std::string name_;
    int index_;
    bool local_;
    const std::atomic<uint32_t>* peer_ = nullptr;
    uint64_t news_ = 0;
    bool turned_ = false;
};

// From a ring into the unit.
class StreamSource : public StreamPort {
  public:
    StreamSource(const Pins& pins, const std::string& prefix, std::string name, int index, bool local,
             void* ring, Chance stalls, std::unique_ptr<DmaFlow> flow, StreamMeter meter)
        : StreamPort(std::move(name), index, local), pins_(pins, prefix), stalls_(stalls),
          flow_(std::move(flow)), meter_(meter) {
        ring_.attach(ring);
        nbytes_ = std::min(ring_.data_bytes(), pins_.data.nbytes());
    }
    void begin_run(uint64_t number) override { stalls_.begin_run(number); }
    void drive(uint64_t cycle) override {
        if (ring_.interrupted()) give_up();
        const bool here = offering_ || ring_.available();
        if (here && !here_ && !local_) news_ = cycle;
        here_ = here;
        if (flow_) flow_->offer(cycle, here ? ring_.waiting_seen() * ring_.data_bytes() : 0);
        if (!offering_ && here && !stalls_.now() &&
            (!flow_ || flow_->can_take(uint32_t(ring_.data_bytes())))) {
            load();
        }
        pins_.valid.set_bit(offering_);
    }
    void sample(uint64_t cycle) override {
        ready_ = pins_.ready.high();
        silent_ = ready_ ? 0 : std::min(silent_ + 1, kSilent);
        meter_.sample(cycle, offering_, ready_, bytes_, last_, pins_.data.get(), dest_);
        if (!offering_ || !ready_) return;
        if (flow_) flow_->take(uint32_t(ring_.data_bytes()));
        inside_ = !last_;
        offering_ = false;
        ring_.pop();
        last_handshake = cycle;
        if (local_) ring_.flush();
    }
    void sample_reset(uint64_t, uint64_t) override {}
    bool pending() const override { return false; }
    void reset() override {
        // The beat that was offered stays in the ring: TVALID went low with the reset.
        offering_ = ready_ = false;
        inside_ = here_ = false;
        silent_ = kSilent;
        if (flow_) flow_->reset();
        pins_.valid.set_bit(false);
    }
    bool waits_for_process() override {
        // Within a packet the sender's next beats are a matter of microseconds. What a DMA can have
        // read ahead must be here too, or the pace would show how fast its process is.
        if (local_ || !(inside_ || ring_.available()) || ring_.ended()) return false;
        if (!flow_) return !offering_ && !ring_.available();
        const uint64_t window = DmaFlow::kBuffer / ring_.data_bytes() + 1;
        if (ring_.waiting_seen() >= window || ring_.refresh() >= window) return false;
        return !ring_.ends_a_packet();
    }
    bool process_works() override {
        const uint32_t state = peer_state();
        // There is room in the ring, so it does not stay asleep for want of it.
        return state == kPeerRunning || state == kPeerBooting || state == kPeerWaitsWrite;
    }
    // TREADY need not stay high until a beat comes.
    bool blocked() const override { return !offering_ && silent_ < kSilent; }
    bool hungry() const override { return !offering_; }
    bool waits_for_data() const override { return true; }
    bool can_move() override { return ready_ && (offering_ || ring_.available()); }
    bool has_news() override { return !offering_ && ring_.available(); }
    void flush() override { ring_.flush(); }
    void cut() override { meter_.cut(); }

  private:
    static constexpr uint32_t kSilent = 128;

    // The DMA that sends was reset: its TVALID goes low, and what comes next begins a packet.
    void give_up() {
        offering_ = inside_ = false;
        turned_ = true;
        meter_.cut();
        if (flow_) flow_->reset();
    }
    void load() {
        const unsigned char* slot = ring_.front();
        BeatSide side;
        std::memcpy(&side, slot, sizeof side);
        std::memcpy(pins_.data.bytes(), slot + sizeof side, nbytes_);
        last_ = side.last != 0;
        dest_ = side.dest;
        bytes_ = uint32_t(nbytes_);
        if (last_ && nbytes_ <= 64) bytes_ = uint32_t(__builtin_popcountll(side.keep[0] & lanes(nbytes_)));
        pins_.last.set_bit(last_);
        if (pins_.keep.exists()) set_bits(pins_.keep, side.keep);
        if (pins_.strb.exists()) set_bits(pins_.strb, side.keep);
        if (pins_.user.exists()) pins_.user.set(side.user);
        if (pins_.id.exists()) pins_.id.set(side.id);
        if (pins_.dest.exists()) pins_.dest.set(side.dest);
        offering_ = turned_ = true;
    }
    static void set_bits(const Pin& pin, const uint64_t (&bits)[2]) {
        if (pin.width <= 64) {
            pin.set(bits[0]);
        } else {
            std::memcpy(pin.bytes(), bits, std::min<size_t>(16, (pin.width + 31) / 32 * 4));
        }
    }

    StreamPins pins_;
    RingReader ring_;
    Chance stalls_;
    std::unique_ptr<DmaFlow> flow_;
    StreamMeter meter_;
    size_t nbytes_;
    uint32_t bytes_ = 0, dest_ = 0;
    bool offering_ = false, ready_ = false, last_ = false;
    bool here_ = false;          // there was a beat, when it was looked for last
    uint32_t silent_ = kSilent;  // cycles since TREADY was high
    bool inside_ = false;        // a packet has begun and not ended
};

// From the unit into a ring.
class StreamSink : public StreamPort {
  public:
    StreamSink(const Pins& pins, const std::string& prefix, std::string name, int index, bool local,
              void* ring, Chance stalls, std::unique_ptr<DmaFlow> flow, StreamMeter meter)
        : StreamPort(std::move(name), index, local), pins_(pins, prefix), stalls_(stalls),
          flow_(std::move(flow)), meter_(meter), checker_(pins, prefix, name_) {
        ring_.attach(ring);
        nbytes_ = std::min(ring_.data_bytes(), pins_.data.nbytes());
        mark_ = ring_.taken();
    }
    void begin_run(uint64_t number) override { stalls_.begin_run(number); }
    void drive(uint64_t cycle) override {
        const bool open = room();
        if (open != open_) turned_ = true;
        if (open && !open_ && !local_) news_ = cycle;
        open_ = open;
        ready_ = open && !stalls_.now() &&
                 (!flow_ || flow_->can_give(uint32_t(ring_.data_bytes())));
        pins_.ready.set_bit(ready_);
    }
    void sample(uint64_t cycle) override {
        checker_.sample(cycle);
        valid_ = pins_.valid.high();
        const bool last = valid_ && pins_.last.high();
        meter_.sample(cycle, valid_, ready_, uint32_t(nbytes_), last, pins_.data.get(), uint32_t(pins_.dest.get()));
        if (!valid_ || !ready_) return;
        store();
        if (flow_) flow_->give(cycle, uint32_t(ring_.data_bytes()), last);
        ring_.push(last);
        if (local_) ring_.flush();
        if (last) active_ = false, mark_ = ring_.taken();
        last_handshake = cycle;
    }
    void sample_reset(uint64_t cycle, uint64_t n) override { checker_.sample_reset(cycle, n); }
    bool pending() const override { return flow_ && flow_->pending(); }
    void reset() override {
        valid_ = active_ = false;
        mark_ = ring_.taken();
        checker_.reset();
        if (flow_) flow_->reset();
        pins_.ready.set_bit(ready_ = false);
        open_ = true;
    }
    bool waits_for_process() override { return !local_ && valid_ && !room(); }
    bool process_works() override {
        const uint32_t state = peer_state();
        return state == kPeerRunning || state == kPeerBooting || state == kPeerWaitsRead;
    }
    bool blocked() const override { return valid_ && !ready_; }
    bool waits_for_data() const override { return false; }
    bool can_move() override { return valid_ && room(); }
    bool has_news() override { return !open_ && room(); }
    void flush() override { ring_.flush(); }
    void cut() override { meter_.cut(); }

  private:
    // What the wires' registers and FIFOs hold while nobody takes anything; all of the ring once
    // the other end was seen to take beats of this packet, because it then takes the rest.
    bool room() {
        if (ring_.occupancy() < (active_ ? ring_.capacity() : ring_.depth())) return true;
        const uint64_t occupancy = ring_.refresh();
        if (!local_ && !active_ && ring_.taken() != mark_) active_ = true;
        return occupancy < (active_ ? ring_.capacity() : ring_.depth());
    }
    void store() {
        unsigned char* slot = ring_.back();
        BeatSide side{};
        side.keep[0] = side.keep[1] = ~0ull;
        if (pins_.keep.exists()) get_bits(pins_.keep, side.keep);
        side.user = pins_.user.get();
        side.id = uint32_t(pins_.id.get());
        side.dest = uint32_t(pins_.dest.get());
        side.last = pins_.last.high();
        std::memcpy(slot, &side, sizeof side);
        std::memcpy(slot + sizeof side, pins_.data.bytes(), nbytes_);
        if (nbytes_ < ring_.data_bytes())
            std::memset(slot + sizeof side + nbytes_, 0, ring_.data_bytes() - nbytes_);
    }
    static void get_bits(const Pin& pin, uint64_t (&bits)[2]) {
        bits[1] = 0;
        if (pin.width <= 64) {
            bits[0] = pin.get();
        } else {
            std::memcpy(bits, pin.bytes(), std::min<size_t>(16, (pin.width + 31) / 32 * 4));
        }
    }

    StreamPins pins_;
    RingWriter ring_;
    Chance stalls_;
    std::unique_ptr<DmaFlow> flow_;
    StreamMeter meter_;
    StreamChecker checker_;
    size_t nbytes_;
    bool ready_ = false, valid_ = false, active_ = false;
    bool open_ = true;  // there was room, when it was looked for last
    uint64_t mark_ = 0;
};

}  // namespace rtl
}  // namespace pynq_torch
