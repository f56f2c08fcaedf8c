// The clock of the programmable logic: one unit, and a program that comes at its own time.
#pragma once

#include <atomic>
#include <thread>

#include "pl.hpp"
#include "pl_cases.hpp"

namespace bench {

// The process's loop in a thread of its own; the case is the program.
struct Logic {
    struct Ended {};
    Board board;
    std::unique_ptr<PlPage> page = std::make_unique<PlPage>();
    std::unique_ptr<UnitBox> box = std::make_unique<UnitBox>();
    Ring in{8, 16, 3};
    rtl::Pl pl;
    rtl::Unit* unit;
    std::atomic<bool> ends{false};
    std::atomic<const char*> pulse{nullptr};  // a net that is high in the next cycle
    std::thread thread;

    explicit Logic(bool streams = false) {
        hand_setup = {};
        pl.page = page.get(), pl.counters = board.counters;
        pl.map = std::make_unique<MemoryMap>(false);
        pl.memory = std::make_unique<Memory>(*pl.map, *preset("pynq-z2"), 100e6, 0, 1);
        pl.bell_fd = eventfd(0, 0);
        rtl::Slot& slot = pl.slots.emplace_back();
        slot.done_fd = eventfd(0, EFD_NONBLOCK), slot.answer_fd = eventfd(0, EFD_NONBLOCK);
        slot.unit = std::make_unique<rtl::Unit>("unit_0", "", box.get(), 3, kOnes, 0, 0);
        unit = slot.unit.get();
        unit->set_clock("ap_clk"), unit->add_reset("ap_rst_n", false), unit->set_interrupt("interrupt");
        unit->follow(&pl.waiting_since);
        unit->add(std::make_unique<LiteManager>(unit->pins(), "s", "unit_0.s", 0, board.trace), "s");
        unit->set_control(0);
        if (streams)
            unit->add(std::make_unique<StreamSource>(unit->pins(), "in", "unit_0.in", 0, false, in.words.data(),
                                                     Chance(1, 0), nullptr,
                                                     StreamMeter(board.counters, board.trace, 1, true)),
                      "in");
        hand->set(".ap_idle", 1), hand->set("in_TREADY", 1);
        hand->edge = [this, last = static_cast<const char*>(nullptr)]() mutable {
            if (ends) throw Ended{};
            if (last) hand->set(last, 0);
            last = pulse.exchange(nullptr);
            if (last) hand->set(last, 1);
        };
        thread = std::thread([this] {
            try {
                pl.run();
            } catch (const Ended&) {}
        });
    }
    ~Logic() {
        ends = true;
        ask(kRead, 0);
        thread.join();
        close(pl.bell_fd), close(pl.slots[0].done_fd), close(pl.slots[0].answer_fd);
    }
    void ask(Operation operation, uint32_t value) {
        box->operation = operation, box->offset = 0, box->count = 1, box->words[0] = value;
        ++box->request;
        rtl::Pl::ring(pl.bell_fd);
    }
    static void until(const char* what, const std::function<bool()>& condition) {
        for (int i = 0; i < 20'000; ++i, usleep(500))
            if (condition()) return;
        throw std::runtime_error(std::string("it never came: ") + what);
    }
    void until_state(PlState state, const char* what) {
        until(what, [&] { return page->state == state; });
    }
    void answered() {
        until("an answer", [&] { return box->response == box->request; });
        uint64_t count = 0;
        until("its bell", [&] { return read(pl.slots[0].answer_fd, &count, 8) == 8; });
        EXPECT(count, 1);
    }
    uint64_t rung() {
        uint64_t count = 0;
        return read(pl.slots[0].done_fd, &count, 8) == 8 ? count : 0;
    }
};

inline void pl_clock() {
    Logic l;
    l.until_state(kPlAsleep, "the clock stands where nothing is to be done");
    EXPECT(l.page->cycle, 144);
    EXPECT(l.box->moved, 15);  // the reset took 16 cycles
    EXPECT(l.board.counters->cycle, 144);
    usleep(2'000);
    EXPECT(l.page->cycle, 144);
    l.ask(kWrite, 1), l.answered();
    l.until_state(kPlRunning, "a unit that runs");
    EXPECT(l.box->state, Doing::kRunning);
    EXPECT(l.box->begun, 144);  // the time in between is no cycle
    EXPECT(l.rung(), 0);
    for (int i = 0; i < 3; ++i) {
        const uint64_t seen = l.page->cycle;
        l.until("more cycles", [&] { return l.page->cycle > seen + 1'000; });
        EXPECT(l.page->cycle % 64, 0);
    }
    l.ask(kRead, 0), l.answered();
    l.pulse = "interrupt";
    l.until("its interrupt", [&] { return l.rung() != 0; });
    l.pulse = ".ap_done";
    l.until("the run's end", [&] { return l.box->completed == 1; });
    l.until("its bell", [&] { return l.rung() != 0; });
    EXPECT(l.box->runs[1].begin, 144);
    EXPECT(l.box->runs[1].idle, 0);
    l.until_state(kPlAsleep, "the clock stands after a run");
    EXPECT(l.box->state, Doing::kIdle);
    const uint64_t end = l.box->runs[1].end, slept = l.page->cycle;
    EXPECT(slept, end / 16 * 16 + 16);
    EXPECT(l.board.counters->cycle, slept);
}

// What passes while a unit waits for the program belongs to no run.
inline void pl_waits() {
    uint64_t first = 0;
    struct { uint32_t before[3], state; } sender{{}, 2};  // which runs
    enum Way { kAtOnce, kLater, kBeatByBeat };
    for (const Way way : {kAtOnce, kLater, kBeatByBeat}) {
        Logic l(true);
        l.until_state(kPlAsleep, "the clock stands where nothing is to be done");
        l.ask(kWrite, 1), l.answered();
        l.until("it waits", [&] {
            return l.box->state == uint32_t(Doing::kWaitRead) && l.page->state == kPlAsleep;
        });
        EXPECT(l.box->blocked, 0);
        const uint64_t rested = l.page->cycle;
        usleep(way == kLater ? 3'000 : 0);
        EXPECT(l.page->cycle, rested);
        if (way == kLater) l.ask(kRead, 0), l.answered();
        if (way == kBeatByBeat) {  // the clock stands in the middle of a packet whose sender runs
            l.unit->streams()[0]->watch(&sender);
            put(l.in, 0);
            l.until("it waits in the packet",
                    [&] { return l.in.header.tail == 1 && l.page->cycle > rested; });
            const uint64_t stands = l.page->cycle;
            usleep(30'000);
            EXPECT(l.page->cycle, stands);
            put(l.in, 3);
        } else {
            put(l.in, 0), put(l.in, 3);
        }
        l.until("both beats are taken", [&] { return l.in.header.tail == 2; });
        l.until("it waits again", [&] {
            return l.box->state == uint32_t(Doing::kWaitRead) && l.page->state == kPlAsleep;
        });
        l.pulse = ".ap_done";
        l.ask(kRead, 0), l.answered();
        l.until("the run's end", [&] { return l.box->completed == 1; });
        const RunRecord& run = l.box->runs[1];
        const uint64_t took = run.end - run.begin - run.idle;
        if (!first) first = took;
        EXPECT(took, first);
        EXPECT(run.idle > 0, way == kLater);
    }
}

}  // namespace bench
