// A stream end for a data mover: many beats between two announcements.
//
// A Port tells the other side of every beat. When both sides share a core that costs a switch a beat;
// a DMA moves bursts, so it publishes its position once a burst, or before it has to wait.
#pragma once

#include <sched.h>

#include "stream.hpp"

namespace pynq_torch {

// One BurstPort either reads or writes; each direction of a ring has one owner.
class BurstPort {
  public:
    void attach(void* ring, int index, WaitObserver* observer) {
        header_ = static_cast<RingHeader*>(ring);
        beats_ = static_cast<unsigned char*>(ring) + kRingDataOffset;
        port_.attach(ring, index, observer);
        stride_ = (sizeof(BeatSide) + port_.data_bytes + 7) & ~size_t(7);
        mask_ = header_->capacity - 1;
        rewind();
    }
    bool attached() const { return header_ != nullptr; }
    size_t data_bytes() const { return port_.data_bytes; }

    // Takes up where the ring stands; nothing may be unpublished.
    void rewind() {
        if (!header_) return;
        read_ = tail_seen_ = header_->tail.load();
        written_ = header_->head.load();
        head_seen_ = read_;
    }

    void read(Beat& beat) {
        BeatSide side;
        for (;;) {
            if (read_ == head_seen_) {
                publish_read();
                head_seen_ =
                    wait_for([&] { return header_->head.load(std::memory_order_acquire); }, read_);
                if (head_seen_ == read_) {
                    port_.read(beat);
                    read_ = head_seen_ = port_.beats_read();
                    return;
                }
            }
            std::memcpy(&side, slot(read_), sizeof side);
            if (!side.withdrawn) break;
            ++read_;
        }
        std::memcpy(beat.data, slot(read_) + sizeof side, port_.data_bytes);
        beat.keep[0] = side.keep[0];
        beat.keep[1] = side.keep[1];
        beat.user = side.user;
        beat.id = side.id;
        beat.dest = side.dest;
        beat.last = side.last != 0;
        ++read_;
        if (read_ - header_->tail.load(std::memory_order_relaxed) >= kBurst) publish_read();
    }
    void publish_read() {
        if (!header_ || header_->tail.load(std::memory_order_relaxed) == read_) return;
        header_->tail.store(read_, std::memory_order_seq_cst);
        wake(false);
    }

    void write(const Beat& beat) {
        go_on();
        if (written_ - tail_seen_ > mask_) {
            publish_written();
            tail_seen_ = wait_for([&] { return header_->tail.load(std::memory_order_acquire); },
                                  written_ - header_->capacity);
            if (written_ - tail_seen_ > mask_) {
                port_.write(beat);
                ++written_;
                return;
            }
        }
        const BeatSide side{{beat.keep[0], beat.keep[1]}, beat.user, beat.id, beat.dest, beat.last, 0};
        std::memcpy(slot(written_), &side, sizeof side);
        std::memcpy(slot(written_) + sizeof side, beat.data, port_.data_bytes);
        if (beat.last) header_->packets.fetch_add(1, std::memory_order_relaxed);
        ++written_;
        if (written_ - header_->head.load(std::memory_order_relaxed) >= kBurst)
            publish_written();
    }
    void publish_written() {
        if (!header_ || header_->head.load(std::memory_order_relaxed) == written_) return;
        header_->head.store(written_, std::memory_order_seq_cst);
        wake(false);
    }
    // The last beat of a transfer: goes out at once, with all before it.
    void write_last(const Beat& beat) {
        go_on();
        publish_written();
        port_.write(beat);
        ++written_;
    }
    // After write_last, with nothing more to give: returns when the FIFO behind the port holds what
    // is left.
    void drain() {
        header_->ended.store(1, std::memory_order_release);
        port_.drain();
    }

    // The sender is reset: takes back what the other side has not taken, but for what a FIFO on the
    // way holds. Nothing may be unpublished, and nothing is written meanwhile.
    void withdraw() {
        if (!header_) return;
        const uint64_t head = header_->head.load();
        uint64_t from = header_->tail.load(), kept = header_->fifo;
        for (; from != head && (kept > 0 || is_withdrawn(slot(from))); ++from)
            if (!is_withdrawn(slot(from))) --kept;
        header_->ended.store(1, std::memory_order_release);
        header_->withdrawn.store(head);  // before the marks: who finds one looks up to here
        // The last one first: a reader that comes upon a mark finds none without one behind it, and
        // so has taken the beats up to there and no others.
        for (uint64_t p = head; p != from; --p)
            __atomic_store_n(
                reinterpret_cast<uint32_t*>(slot(p - 1) + offsetof(BeatSide, withdrawn)), 1,
                __ATOMIC_RELEASE);
    }

    // Wakes the process that sleeps on the ring, also (always = true) this side, to look for an abort.
    void wake(bool always) {
        if (!header_ || (!always && header_->sleepers.load(std::memory_order_seq_cst) == 0)) return;
        header_->signal.fetch_add(1, std::memory_order_seq_cst);
        syscall(SYS_futex, &header_->signal, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }

  private:
    static constexpr uint64_t kBurst = 64;

    unsigned char* slot(uint64_t position) const { return beats_ + (position & mask_) * stride_; }
    // Before a beat is announced: who sees the beat must not take it for the last one.
    void go_on() {
        if (header_->ended.load(std::memory_order_relaxed) != 0)
            header_->ended.store(0, std::memory_order_relaxed);
    }

    // Gives the other side the processor for a while before this side goes to sleep.
    template <class Position> uint64_t wait_for(Position position, uint64_t old) {
        uint64_t now = position();
        for (int i = 0; now == old && i < 32; ++i) {
            sched_yield();
            now = position();
        }
        return now;
    }

    Port port_;
    RingHeader* header_ = nullptr;
    unsigned char* beats_ = nullptr;
    size_t stride_ = 0;
    uint64_t mask_ = 0;
    uint64_t read_ = 0, written_ = 0;            // positions of this side, maybe not published yet
    uint64_t head_seen_ = 0, tail_seen_ = 0;     // positions of the other side when last looked at
};

}  // namespace pynq_torch
