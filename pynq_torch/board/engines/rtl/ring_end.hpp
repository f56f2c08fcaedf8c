// The clocked side's ends of a stream's ring: positions are announced in batches.
//
// The other end is a process that moves bursts (a DMA, a csim unit). Telling it of every beat would
// cost more than the beat, so the position goes out every kBatch beats, with TLAST, and whenever the
// clock pauses (flush).
#pragma once

#include <algorithm>
#include <utility>

#include "../stream.hpp"

namespace pynq_torch {
namespace rtl {

class RingEnd {
  public:
    void attach(void* ring) {
        header_ = static_cast<RingHeader*>(ring);
        beats_ = static_cast<unsigned char*>(ring) + kRingDataOffset;
        stride_ = (sizeof(BeatSide) + header_->data_bytes + 7) & ~size_t(7);
        mask_ = header_->capacity - 1;
    }
    size_t data_bytes() const { return header_->data_bytes; }
    uint64_t capacity() const { return header_->capacity; }
    uint64_t depth() const { return header_->depth; }

  protected:
    static constexpr uint64_t kBatch = 64;

    unsigned char* slot(uint64_t position) const { return beats_ + (position & mask_) * stride_; }
    void wake() {
        if (header_->sleepers.load(std::memory_order_seq_cst) == 0) return;
        header_->signal.fetch_add(1, std::memory_order_seq_cst);
        syscall(SYS_futex, &header_->signal, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }

    RingHeader* header_ = nullptr;
    unsigned char* beats_ = nullptr;
    size_t stride_ = 0;
    uint64_t mask_ = 0;
    bool quiet_ = false;  // a position was announced without waking the sleeper
};

class RingReader : public RingEnd {
  public:
    void attach(void* ring) {
        RingEnd::attach(ring);
        read_ = told_ = header_->tail.load();
        seen_ = header_->head.load();
    }
    bool available() {
        do {
            if (read_ == seen_) seen_ = header_->head.load(std::memory_order_acquire);
            if (read_ == seen_) return false;
        } while (pass_withdrawn());
        return true;
    }
    // Whether the sender took back what came next, since this was asked last. The beat in front()
    // is then another one.
    bool interrupted() {
        pass_withdrawn();
        return std::exchange(interrupted_, false);
    }
    uint64_t waiting_seen() const { return seen_ - read_; }
    uint64_t refresh() {
        seen_ = header_->head.load(std::memory_order_acquire);
        return seen_ - read_;
    }
    // The beat that came last has TLAST, or no more of its packet follows; so had the one before
    // those that wait, when none does.
    bool ends_a_packet() const {
        BeatSide side;
        std::memcpy(&side, slot(seen_ - 1), sizeof side);
        return side.last != 0 || side.withdrawn != 0;
    }
    // The DMA that sends gives nothing more before somebody asks it to.
    bool ended() const { return header_->ended.load(std::memory_order_acquire) != 0; }
    const unsigned char* front() const { return slot(read_); }
    void pop() {
        if (++read_ - told_ >= kBatch) tell(false);
    }
    // Announces everything, and wakes a sender that sleeps.
    void flush() {
        if (told_ != read_ || quiet_) tell(true);
    }

  private:
    bool pass_withdrawn() {
        const uint64_t end = header_->withdrawn.load(std::memory_order_acquire);
        const uint64_t before = read_;
        while (read_ < end && is_withdrawn(slot(read_))) pop();
        if (read_ == before) return false;
        seen_ = std::max(seen_, read_);
        return interrupted_ = true;
    }
    void tell(bool urgent) {
        header_->tail.store(read_, std::memory_order_seq_cst);
        told_ = read_;
        const uint64_t left = header_->head.load(std::memory_order_relaxed) - read_;
        // A sender sleeps for room, or until no more than `depth` is left behind it.
        quiet_ = !(urgent || left <= depth() || left <= capacity() / 2);
        if (!quiet_) wake();
    }
    uint64_t read_ = 0, told_ = 0, seen_ = 0;
    bool interrupted_ = false;
};

class RingWriter : public RingEnd {
  public:
    void attach(void* ring) {
        RingEnd::attach(ring);
        written_ = told_ = header_->head.load();
        seen_ = header_->tail.load();
    }
    // Beats between the two ends; the other end may have taken some since.
    uint64_t occupancy() const { return written_ - seen_; }
    uint64_t refresh() {
        seen_ = header_->tail.load(std::memory_order_acquire);
        return written_ - seen_;
    }
    uint64_t taken() const { return seen_; }
    unsigned char* back() { return slot(written_); }
    void push(bool last) {
        ++written_;
        if (last) header_->packets.fetch_add(1, std::memory_order_relaxed);
        if (last || written_ - told_ >= kBatch) tell(last);
    }
    void flush() {
        if (told_ != written_ || quiet_) tell(true);
    }

  private:
    void tell(bool urgent) {
        header_->head.store(written_, std::memory_order_seq_cst);
        told_ = written_;
        quiet_ = !(urgent || refresh() >= capacity() / 4);
        if (!quiet_) wake();
    }
    uint64_t written_ = 0, told_ = 0, seen_ = 0;
};

}  // namespace rtl
}  // namespace pynq_torch
