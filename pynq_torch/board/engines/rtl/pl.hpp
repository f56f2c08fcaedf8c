// The programmable logic as one process: every unit in one clock, behind them one memory.
//
// The clock runs while there is something to do and stands otherwise. Where a unit waits for another
// process in the middle of a packet it stands as well, for a bounded time, so that counts of cycles
// do not show how the PC shared its processors.
#pragma once

#include <algorithm>
#include <ctime>
#include <memory>
#include <poll.h>
#include <sched.h>
#include <string>
#include <sys/eventfd.h>
#include <unistd.h>
#include <vector>

#include "layout.hpp"
#include "memory.hpp"
#include "unit.hpp"

namespace pynq_torch {
namespace rtl {

struct Slot {
    std::unique_ptr<Unit> unit;
    int done_fd = -1;    // rung when a run ended or the interrupt output changed
    int answer_fd = -1;  // rung when a request was answered
    bool active = true;
};

class Pl {
  public:
    PlPage* page = nullptr;
    std::unique_ptr<MemoryMap> map;
    std::unique_ptr<Memory> memory;
    CounterTable* counters = nullptr;
    std::vector<Slot> slots;
    int bell_fd = -1;
    size_t at = ~size_t(0);  // the unit being evaluated, if any, for reports of failures
    uint64_t cycle = 0;
    void (*on_stray)() = nullptr;       // an address was used that is nobody's
    void (*on_read_ahead)() = nullptr;  // one just outside a buffer was read
    // From this cycle on every unit has waited for the program; Unit::kNever: they do not wait.
    uint64_t waiting_since = Unit::kNever;

    [[noreturn]] void run() {
        for (Slot& slot : slots) slot.unit->begin_reset();
        const uint64_t booted = cycle + kBoot;
        for (;;) {
            bool asked = false;
            for (Slot& slot : slots) {
                if (!slot.unit->asked()) continue;
                if (slot.unit->asked_to_change()) wait_ends(cycle);
                slot.active = asked = true;
                if (slot.unit->serve(cycle)) {
                    publish(slot);
                    ring(slot.answer_fd);
                    asked_ns_ = now_ns();
                }
            }
            if (asked || (cycle & kLook) == 0) {
                if (!look(asked)) continue;
                if (cycle >= booted && page->state.load(std::memory_order_relaxed) == kPlBooting)
                    page->state.store(kPlRunning, std::memory_order_release);
                // Where the clock was about to stand, a request that came just then takes no cycle
                // more than one that came later.
                if (asked_anew()) continue;
            }
            if (waits_for_process()) freeze();
            else gave_up_ = 0;
            step();
        }
    }
    // Ends recordings, so that their files are whole.
    void close() {
        for (Slot& slot : slots) slot.unit.reset();
    }

    static void ring(int fd) {
        const uint64_t one = 1;
        [[maybe_unused]] const ssize_t n = write(fd, &one, sizeof one);
    }

  private:
    static constexpr uint64_t kLook = 15;        // mask: cycles between two looks at who is active
    static constexpr uint64_t kPublish = 63;     // mask: cycles between two reports to the board
    // The board is told that the process runs when the clock first stopped, so that a program's first
    // access is in the same cycle whenever it comes; at the latest after so many.
    static constexpr uint64_t kBoot = 2'048;
    static constexpr uint64_t kFreezeNs = 10'000'000;       // of a process that does nothing
    static constexpr uint64_t kPatienceNs = 5'000'000'000;  // of one that is running
    static constexpr unsigned kTurns = 128;  // it gets the processor before a nap
    static constexpr uint64_t kSpinNs = 30'000;  // programs often go on at once
    static constexpr uint64_t kNapNs = 20'000, kLongNapNs = 2'000'000;
    static constexpr long kLookNs = 500'000'000;  // where only a bell would say something
    // Of a unit that starts by itself: so long after the last access it naps for so long.
    static constexpr uint64_t kAskedNs = 200'000'000;
    static constexpr long kRestartNs = 1'000'000;
    // Of a unit that asks for data and does not repeat itself; so many cycles make it one that
    // waits for good, a third of a second of the board.
    static constexpr uint64_t kFirstSlice = 16'384, kSilence = 1u << 25;
    static constexpr unsigned kMostSlices = 4;  // so often they become longer

    void step() {
        memory->tick(cycle);
        for (at = 0; at < slots.size(); ++at)
            if (slots[at].active) slots[at].unit->low(cycle);
        if (waiting_since != Unit::kNever) look_for_news();
        for (at = 0; at < slots.size(); ++at)
            if (slots[at].active) slots[at].unit->sample(cycle);
        for (at = 0; at < slots.size(); ++at)
            if (slots[at].active) slots[at].unit->high(cycle);
        if (memory->faulted()) on_stray();
        if (memory->read_ahead.kind != AccessFault::none) on_read_ahead();
        for (Slot& slot : slots) {
            if (!slot.active) continue;
            Unit& unit = *slot.unit;
            if (unit.just_started()) {
                unit.begin_run();
                if (works_alone(unit)) memory->begin_run(cycle);
            }
            const bool finished = unit.finished();
            if (unit.stirs() || (finished && unit.seen())) waiting_since = Unit::kNever;
            if (finished || unit.irq_changed()) {
                publish(slot);
                ring(slot.done_fd);
            }
        }
        ++cycle;
    }

    bool works_alone(const Unit& unit) const {
        for (const Slot& slot : slots)
            if (slot.unit.get() != &unit && slot.unit->running()) return false;
        return true;
    }

    bool asked_anew() const {
        for (const Slot& slot : slots)
            if (slot.unit->asked_anew()) return true;
        return false;
    }

    // Who needs a clock; false when nobody did and the process has slept.
    bool look(bool asked) {
        bool any = memory->pending(), repeating = true;
        for (Slot& slot : slots) {
            slot.active = slot.unit->active(cycle);
            any = any || (slot.active && !slot.unit->idles());
            repeating = repeating && (!slot.active || slot.unit->repeats());
        }
        if (!any) {
            sleep();
            return false;
        }
        if (repeating && !asked) rest();
        if ((cycle & kPublish) != 0) return true;
        for (at = 0; at < slots.size(); ++at) {
            publish(slots[at]);
            slots[at].unit->check_time(cycle);
        }
        announce();
        if (!asked) rest();
        if (resting_ && stirs()) {
            resting_ = false;
            page->state.store(kPlRunning, std::memory_order_release);
        }
        return true;
    }

    void announce() {
        page->cycle.store(cycle, std::memory_order_release);
        if (counters) counters->cycle.store(cycle, std::memory_order_release);
    }
    void publish(Slot& slot, const StreamPort* waits = nullptr) {
        // An access that changed nothing does not set a unit to work: it waits as it did before.
        if (!waits && waiting_since != Unit::kNever && cycle >= slice_end_)
            waits = slot.unit->said_to_wait_on();
        if (slot.unit->publish(cycle, waits)) ring(slot.done_fd);
    }
    void flush() {
        for (Slot& slot : slots) slot.unit->flush();
    }

    // ---- when the clock stands -------------------------------------------------------------------

    // What passes while every unit waits, because somebody reads a register or because a slice is
    // tried, belongs to no run. If a unit then does something by itself, it had not waited.
    void wait_begins() {
        if (waiting_since != Unit::kNever) return;
        waiting_since = cycle;
        for (Slot& slot : slots) slot.unit->begin_idle();
    }
    void wait_ends(uint64_t until) {
        if (waiting_since == Unit::kNever) return;
        for (Slot& slot : slots) slot.unit->end_idle(until - waiting_since);
        waiting_since = Unit::kNever;
        slice_end_ = slices_ = 0;
    }
    void look_for_news() {
        for (const Slot& slot : slots) {
            const uint64_t news = slot.unit->news();
            if (slot.active && news >= waiting_since) return wait_ends(news);
        }
    }

    bool waits_for_process() const {
        for (const Slot& slot : slots)
            if (slot.active && slot.unit->waits_for_process()) return true;
        return false;
    }

    // In the middle of a packet the next beat, or room for it, is a matter of microseconds.
    void freeze() {
        uint64_t waiting = 0;
        for (size_t i = 0; i < slots.size(); ++i)
            if (slots[i].active && slots[i].unit->waits_for_process()) waiting |= uint64_t(1) << (i & 63);
        if (gave_up_ == waiting) return;
        flush();
        const uint64_t begin = now_ns();
        uint64_t worked = begin;
        for (unsigned turn = 0; waits_for_process(); ++turn) {
            if (turn < kTurns) {
                sched_yield();
            } else {
                if (turn == kTurns) say_waiting();
                const uint64_t now = now_ns();
                const struct timespec nap{0, nap_ns(now - begin)};
                nanosleep(&nap, nullptr);
                for (const Slot& slot : slots)
                    if (slot.active && slot.unit->process_works()) worked = now;
                if (now - worked > kFreezeNs || now - begin > kPatienceNs) {
                    gave_up_ = waiting;  // it may depend on what a clock would bring about
                    return;
                }
            }
        }
        gave_up_ = 0;
    }

    // Every unit that could do something waits on a stream: the clock rests. Where each of them
    // only repeats itself it does so until something comes from outside. Otherwise it goes on in
    // slices, longer each time, in case that one computes; the first of them at once.
    void rest() {
        uint64_t stirred = 0;
        bool restarting = true, repeating = true;
        for (const Slot& slot : slots) {
            if (!slot.active) continue;
            if (slot.unit->pending() || slot.unit->asked()) return;
            stirred = std::max(stirred, slot.unit->stirred());
            restarting = restarting && slot.unit->auto_restarts();
            repeating = repeating && slot.unit->repeats();
        }
        if (memory->pending()) return;
        for (const Slot& slot : slots) {
            if (!slot.active || slot.unit->idles()) continue;
            if (slot.unit->waits(cycle)) continue;
            if (restarting && cycle >= slice_end_) throttle();
            return;
        }
        if (stirred != stirred_) stirred_ = stirred, slice_end_ = slices_ = 0, silent_ = 0;
        if (!repeating && cycle < slice_end_) return;
        if (repeating && blind_) waiting_since = Unit::kNever;  // it has computed until now
        blind_ = !repeating;
        wait_begins();
        if (!repeating && slices_ == 0) return slice();
        resting_ = true;
        say_waiting();
        page->state.store(kPlAsleep, std::memory_order_release);
        flush();
        const bool for_good = repeating || silent_ > kSilence;
        const uint64_t limit = for_good ? ~uint64_t(0) : kFreezeNs << slices_;
        if (!doze(limit)) slice();
        else if (news()) slices_ = 0, silent_ = 0;
    }
    void slice() {
        const uint64_t cycles = kFirstSlice << slices_;
        for (Slot& slot : slots) slot.unit->excuse(cycles);
        slice_end_ = cycle + cycles;
        silent_ += cycles;
        if (slices_ < kMostSlices) ++slices_;
    }
    bool news() const {
        for (const Slot& slot : slots)
            if (slot.unit->streams_can_move()) return true;
        return false;
    }
    // A unit that is started again and again, while nobody asks, would keep a processor busy.
    void throttle() {
        if (now_ns() - asked_ns_ < kAskedNs) return;
        const struct timespec nap{0, kRestartNs};
        nanosleep(&nap, nullptr);
        slice_end_ = cycle + 1'024;
    }
    // Something but registers has moved since the clock first rested.
    bool stirs() const {
        for (const Slot& slot : slots)
            if (slot.active && slot.unit->stirred() > stirred_) return true;
        return false;
    }
    void say_waiting() {
        for (Slot& slot : slots)
            if (slot.active) publish(slot, slot.unit->waits_on());
        announce();
    }

    // Sleeps until there is something to do, at most so long; true if there is.
    bool doze(uint64_t limit_ns) {
        const uint64_t begin = now_ns();
        for (;;) {
            for (Slot& slot : slots) {
                slot.unit->poll_waves();
                if (slot.unit->asked()) return true;
            }
            if (news()) return true;
            const uint64_t passed = now_ns() - begin;
            if (passed >= limit_ns) return false;
            wait_bell(nap_ns(passed));
        }
    }
    // Streams have no bell: looked at often in the beginning, and every few ms later on.
    static long nap_ns(uint64_t passed_ns) {
        return long(std::clamp<uint64_t>(passed_ns / 16, kNapNs, kLongNapNs));
    }
    void wait_bell(long ns) {
        struct pollfd bell {bell_fd, POLLIN, 0};
        const struct timespec limit{0, ns};
        if (ppoll(&bell, 1, &limit, nullptr) <= 0) return;
        uint64_t count;
        [[maybe_unused]] const ssize_t n = read(bell_fd, &count, sizeof count);
    }

    void sleep() {
        flush();
        wait_begins();
        for (Slot& slot : slots) {
            const Unit& unit = *slot.unit;
            publish(slot, unit.free_running() || unit.counting() ? unit.waits_on() : nullptr);
        }
        announce();
        page->state.store(kPlAsleep, std::memory_order_release);
        map->refresh_grants();
        const uint64_t begin = now_ns();
        while (!awaited() && now_ns() - begin < kSpinNs) relax();
        while (!awaited()) {
            for (Slot& slot : slots) slot.unit->poll_waves();
            wait_bell(listens() ? nap_ns(now_ns() - begin) : kLookNs);
        }
        resting_ = false;
        page->state.store(kPlRunning, std::memory_order_release);
    }
    bool awaited() const {
        for (const Slot& slot : slots)
            if (slot.unit->asked() || slot.unit->streams_can_move()) return true;
        return false;
    }
    // A unit would take a beat although it is not running.
    bool listens() const {
        for (const Slot& slot : slots)
            if (slot.unit->listens()) return true;
        return false;
    }

    uint64_t gave_up_ = 0, slice_end_ = 0, stirred_ = Unit::kNever, silent_ = 0, asked_ns_ = 0;
    unsigned slices_ = 0;
    bool resting_ = false, blind_ = false;
};

}  // namespace rtl
}  // namespace pynq_torch
