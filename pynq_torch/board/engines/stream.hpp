// One end of an AXI4-Stream connection: a ring of beats in memory shared by two processes.
//
// The ring has exactly one producer and one consumer (AXI4-Stream is point to point), so head and
// tail each have one writer and need no lock. A blocked side sleeps on a futex.
//
// A sender that is reset takes back what the other side has not taken. Head and tail stay where
// they are, because the other side may be in the middle of a beat: the sender marks the beats, and
// who comes upon a marked one passes over it. So a beat is either taken once or not at all, and no
// slot is written again before the reader has left it.
#pragma once

#include <algorithm>
#include <atomic>
#include <climits>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace pynq_torch {

inline uint64_t now_ns() {
    struct timespec t {};
    clock_gettime(CLOCK_MONOTONIC, &t);
    return uint64_t(t.tv_sec) * 1'000'000'000ull + uint64_t(t.tv_nsec);
}
// In a loop that waits for another processor.
inline void relax() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

// The side channels of one beat, as stored in the ring in front of its data bytes.
struct BeatSide {
    uint64_t keep[2];  // TKEEP, one bit a byte, up to 1024-bit TDATA
    uint64_t user;
    uint32_t id;
    uint32_t dest;
    uint32_t last;
    uint32_t withdrawn;  // set by a sender that was reset, in a beat that it had written
};
static_assert(sizeof(BeatSide) == 40, "layout shared with streams.py");
static_assert(offsetof(BeatSide, withdrawn) == 36, "layout shared with streams.py");

inline bool is_withdrawn(const unsigned char* slot) {
    return __atomic_load_n(reinterpret_cast<const uint32_t*>(slot + offsetof(BeatSide, withdrawn)),
                           __ATOMIC_ACQUIRE) != 0;
}

struct Beat {
    unsigned char* data = nullptr;  // Port::data_bytes bytes, owned by the caller
    uint64_t keep[2] = {~0ull, ~0ull};
    uint64_t user = 0;
    uint32_t id = 0;
    uint32_t dest = 0;
    bool last = false;
};

// Header of a ring; streams.py reads the same layout.
struct RingHeader {
    uint32_t reserved;
    uint32_t data_bytes;    // TDATA bytes of a beat
    uint32_t capacity;      // beats the ring holds, a power of two
    uint32_t depth;         // beats the modelled FIFO holds once a sender is done
    std::atomic<uint64_t> head;  // beats written
    std::atomic<uint64_t> tail;  // beats read
    std::atomic<uint64_t> packets;  // TLASTs written
    std::atomic<uint32_t> signal;   // futex word, bumped at every change somebody sleeps on
    std::atomic<uint32_t> sleepers;
    std::atomic<uint64_t> withdrawn;  // head when the sender last took beats back: none is later
    uint32_t fifo;  // of the depth, beats in FIFOs on the way, which no reset of a sender empties
    std::atomic<uint32_t> ended;  // a DMA that sends has given all that it was asked for
};
static_assert(sizeof(RingHeader) == 64, "layout shared with streams.py");
constexpr size_t kRingDataOffset = 64;

// Told by the engine runtime when this side starts and stops waiting, so that the board can say
// who is blocked on which port. `port` counts from 0; waiting_for_data tells read from write.
struct WaitObserver {
    virtual void blocked(int port, bool waiting_for_data) = 0;
    virtual void unblocked() = 0;
    // True when the wait must be given up (reset); Port then throws Aborted.
    virtual bool aborted() = 0;
    // True when the arguments of a run that has moved no beat yet were changed meanwhile; Port then
    // throws Relatch.
    virtual bool stale() { return false; }
    virtual ~WaitObserver() = default;
};

struct Aborted {};
struct Relatch {};

// Takes what a kernel did that a board would not do, as text; none: a program without a board.
inline void (*&note_hook())(const char*) {
    static void (*hook)(const char*) = nullptr;
    return hook;
}

class Port {
  public:
    size_t data_bytes = 0;

    void attach(void* ring, int index, WaitObserver* observer) {
        header_ = static_cast<RingHeader*>(ring);
        beats_ = static_cast<unsigned char*>(ring) + kRingDataOffset;
        data_bytes = header_->data_bytes;
        stride_ = (sizeof(BeatSide) + data_bytes + 7) & ~size_t(7);
        mask_ = header_->capacity - 1;
        index_ = index;
        observer_ = observer;
    }
    bool attached() const { return header_ != nullptr; }

    // Beats on the way, without those that were withdrawn.
    size_t size() const {
        const uint64_t tail = header_->tail.load(std::memory_order_acquire);
        const uint64_t head = header_->head.load(std::memory_order_acquire);
        const uint64_t end = header_->withdrawn.load(std::memory_order_acquire);
        size_t n = size_t(head - tail);
        for (uint64_t p = tail; p < end; ++p) n -= is_withdrawn(slot(p));
        return n;
    }
    bool empty() {
        if (!sender_) pass_withdrawn();  // who only asks whether there is a beat must not stop here
        return size() == 0;
    }
    bool full() const { return room() == 0; }
    uint64_t beats_read() const { return header_->tail.load(std::memory_order_relaxed); }
    uint64_t moved() const { return moved_; }  // beats that this side took or gave

    bool try_read(Beat& beat) {
        uint64_t tail;
        BeatSide side;
        do {
            pass_withdrawn();
            tail = header_->tail.load(std::memory_order_relaxed);
            if (header_->head.load(std::memory_order_acquire) == tail) return false;
            std::memcpy(&side, slot(tail), sizeof side);
        } while (side.withdrawn);
        std::memcpy(beat.data, slot(tail) + sizeof side, data_bytes);
        beat.keep[0] = side.keep[0];
        beat.keep[1] = side.keep[1];
        beat.user = side.user;
        beat.id = side.id;
        beat.dest = side.dest;
        beat.last = side.last != 0;
        header_->tail.store(tail + 1, std::memory_order_seq_cst);
        ++moved_;
        wake(size() == header_->capacity / 2 || size() == header_->depth);
        return true;
    }

    bool try_write(const Beat& beat) {
        if (room() == 0) return false;
        const uint64_t head = header_->head.load(std::memory_order_relaxed);
        BeatSide side{{beat.keep[0], beat.keep[1]}, beat.user, beat.id, beat.dest, beat.last, 0};
        std::memcpy(slot(head), &side, sizeof side);
        std::memcpy(slot(head) + sizeof side, beat.data, data_bytes);
        if (beat.last) header_->packets.fetch_add(1, std::memory_order_relaxed);
        header_->head.store(head + 1, std::memory_order_seq_cst);
        ++moved_;
        sender_ = true;
        wake(beat.last || size() == header_->capacity / 2);
        return true;
    }

    void read(Beat& beat) {
        if (try_read(beat)) return;
        wait([&] { return try_read(beat); }, true);
    }
    void write(const Beat& beat) {
        if (try_write(beat)) return;
        wait([&] { return try_write(beat); }, false);
    }
    // A sender is done when the FIFO behind it holds what is left: until then TREADY is low.
    void drain() {
        if (!sender_ || size() <= header_->depth) return;
        wait([&] { return size() <= header_->depth; }, false);
    }

    static constexpr long kSleepNs = 100'000, kLongSleepNs = 50'000'000;
    // Sleeps until `ready` holds, and asks again at the latest after `most_ns`.
    template <class Ready> void wait(Ready ready, bool for_data, long most_ns = kLongSleepNs) {
        const auto done = [&] {  // what was written just before the data counts, also while it spins
            if (observer_ && observer_->stale()) throw Relatch{};
            return ready();
        };
        for (int spin = 0; spin < 200; ++spin) {
            if (done()) return;
            relax();
        }
        // Where both sides share a core, the other one makes more of it than spinning would.
        for (int turn = 0; turn < 16; ++turn) {
            sched_yield();
            if (done()) return;
        }
        if (observer_) observer_->blocked(index_, for_data);
        header_->sleepers.fetch_add(1, std::memory_order_seq_cst);
        long limit_ns = kSleepNs;
        for (;;) {
            const uint32_t seen = header_->signal.load(std::memory_order_seq_cst);
            if (observer_ && observer_->stale()) {
                header_->sleepers.fetch_sub(1, std::memory_order_seq_cst);
                observer_->unblocked();
                throw Relatch{};
            }
            if (ready()) break;
            if (observer_ && observer_->aborted()) {
                header_->sleepers.fetch_sub(1, std::memory_order_seq_cst);
                throw Aborted{};
            }
            const long limit[] = {0, limit_ns};  // of the system call: time_t may be longer
            limit_ns = std::min(2 * limit_ns, most_ns);
            syscall(SYS_futex, &header_->signal, FUTEX_WAIT, seen, limit, nullptr, 0);
        }
        header_->sleepers.fetch_sub(1, std::memory_order_seq_cst);
        if (observer_) observer_->unblocked();
    }

  private:
    static constexpr uint64_t kWakeNs = 50'000;

    unsigned char* slot(uint64_t position) const { return beats_ + (position & mask_) * stride_; }
    // Slots that are free: a withdrawn beat keeps its own until the reader has passed it.
    size_t room() const {
        return header_->capacity - size_t(header_->head.load(std::memory_order_relaxed) -
                                          header_->tail.load(std::memory_order_acquire));
    }
    // The reader's side only.
    void pass_withdrawn() {
        const uint64_t tail = header_->tail.load(std::memory_order_relaxed);
        const uint64_t end = header_->withdrawn.load(std::memory_order_acquire);
        uint64_t next = tail;
        while (next < end && is_withdrawn(slot(next))) ++next;
        if (next == tail) return;
        header_->tail.store(next, std::memory_order_seq_cst);
        wake(true);
    }
    // Waking costs a system call and, where both sides share a core, a switch. So it is made only
    // when somebody sleeps, and beat by beat at most every 50 us; what is urgent (TLAST, a ring half
    // full or half empty) always wakes. A sleeper that missed a beat this way looks again by itself
    // soon: its first sleep is short, and each next one twice as long, up to 50 ms.
    void wake(bool urgent) {
        if (header_->sleepers.load(std::memory_order_seq_cst) == 0) return;
        if (!urgent) {
            const uint64_t now = now_ns();
            if (now - woke_ns_ < kWakeNs) return;
            woke_ns_ = now;
        }
        header_->signal.fetch_add(1, std::memory_order_seq_cst);
        syscall(SYS_futex, &header_->signal, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
    }
    RingHeader* header_ = nullptr;
    unsigned char* beats_ = nullptr;
    size_t stride_ = 0;
    uint64_t mask_ = 0;
    int index_ = -1;
    bool sender_ = false;
    uint64_t moved_ = 0;
    uint64_t woke_ns_ = 0;
    WaitObserver* observer_ = nullptr;
};

}  // namespace pynq_torch
