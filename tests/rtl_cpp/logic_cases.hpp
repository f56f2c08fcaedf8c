// The clock of the programmable logic: a unit, and a program that comes at its own time.
#pragma once

#include <atomic>
#include <set>
#include <thread>

#include "pl.hpp"
#include "pl_cases.hpp"

namespace bench {

inline uint64_t now(clockid_t clock = CLOCK_MONOTONIC) {
    timespec t;
    clock_gettime(clock, &t);
    return uint64_t(t.tv_sec) * 1'000'000'000 + uint64_t(t.tv_nsec);
}

// The process's loop in a thread of its own; the case is the program. Beside the unit there is one
// that nobody uses, before it.
struct Logic {
    struct Ended {};
    using Each = std::function<void(Logic&, uint64_t cycle)>;
    Board board;
    std::unique_ptr<PlPage> page = std::make_unique<PlPage>();
    std::unique_ptr<UnitBox> unused = std::make_unique<UnitBox>(), box = std::make_unique<UnitBox>();
    Ring in{8, 16, 3}, out{8, 16, 3};
    rtl::Pl pl;
    rtl::Unit* unit;
    Hand* unused_hand = nullptr;
    std::string stopped;  // why the loop ended
    std::atomic<bool> ends{false};
    std::atomic<const char*> pulse{nullptr};  // a net that is high in the next cycle
    std::thread thread;

    // `each`: what the unit does besides, called at every rising edge.
    explicit Logic(bool streams = false, const Each& each = {}, uint64_t timeout = 0, bool seen = true) {
        hand_setup = {.seen = seen};
        pl.page = page.get(), pl.counters = board.counters;
        pl.map = std::make_unique<MemoryMap>(false);
        pl.memory = std::make_unique<Memory>(*pl.map, *preset("pynq-z2"), 100e6, 0, 1);
        pl.bell_fd = eventfd(0, 0);
        pl.slots.resize(2);
        for (rtl::Slot& slot : pl.slots) {
            const bool second = &slot != pl.slots.data();
            slot.done_fd = eventfd(0, EFD_NONBLOCK), slot.answer_fd = eventfd(0, EFD_NONBLOCK);
            slot.unit = std::make_unique<rtl::Unit>("unit_0", "", (second ? box : unused).get(), 3, kOnes, 0,
                                                    timeout);
            unit = slot.unit.get();
            unit->set_clock("ap_clk"), unit->add_reset("ap_rst_n", false), unit->set_interrupt("interrupt");
            unit->follow(&pl.waiting_since);
            if (seen) hand->set(".ap_idle", 1);
            if (!second) {
                unit->add(std::make_unique<LiteManager>(unit->pins(), "s", "unused.s", 3, board.trace), "s");
                unit->set_control(0), unused_hand = hand;
            }
        }
        unit->add(std::make_unique<LiteManager>(unit->pins(), "s", "unit_0.s", 0, board.trace), "s");
        unit->set_control(0);
        if (streams) {
            unit->add(std::make_unique<StreamSource>(unit->pins(), "in", "unit_0.in", 0, false, in.words.data(),
                                                     Chance(1, 0), nullptr,
                                                     StreamMeter(board.counters, board.trace, 1, true)),
                      "in");
            unit->add(std::make_unique<StreamSink>(unit->pins(), "out", "unit_0.out", 1, false, out.words.data(),
                                                   Chance(1, 0), nullptr,
                                                   StreamMeter(board.counters, board.trace, 2, false)),
                      "out");
        }
        hand->set("in_TREADY", 1);
        hand->edge = [this, each, last = static_cast<const char*>(nullptr)]() mutable {
            if (ends) throw Ended{};
            if (each) each(*this, hand->edges - 1);
            if (last) hand->set(last, 0);
            last = pulse.exchange(nullptr);
            if (last) hand->set(last, 1);
        };
        thread = std::thread([this] {
            try {
                pl.run();
            } catch (const Ended&) {
            } catch (const rtl::RunTimeout& error) {
                stopped = error.what();
            }
        });
    }
    ~Logic() {
        end();
        close(pl.bell_fd);
        for (const rtl::Slot& slot : pl.slots) close(slot.done_fd), close(slot.answer_fd);
    }
    void end() {
        if (!thread.joinable()) return;
        ends = true;
        ask(kRead, 0);
        thread.join();
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
    void until_waits() {
        until("it waits", [&] {
            return box->state == uint32_t(Doing::kWaitRead) && page->state == kPlAsleep;
        });
    }
    void answered() {
        until("an answer", [&] { return box->response == box->request; });
        uint64_t count = 0;
        until("its bell", [&] { return read(pl.slots[1].answer_fd, &count, 8) == 8; });
        EXPECT(count, 1);
    }
    // It does nothing for so long: no cycle, and next to no work of the processor.
    void expect_still(unsigned us) {
        clockid_t clock;
        pthread_getcpuclockid(thread.native_handle(), &clock);
        const uint64_t cycle = page->cycle, busy_ns = now(clock);
        usleep(us);
        EXPECT(page->cycle, cycle);
        EXPECT((now(clock) - busy_ns) / 1'000 < us / 3, true);
    }
    uint64_t rung() {
        uint64_t count = 0;
        return read(pl.slots[1].done_fd, &count, 8) == 8 ? count : 0;
    }
};

inline void pl_clock() {
    Logic l;
    l.until_state(kPlAsleep, "the clock stands where nothing is to be done");
    EXPECT(l.page->cycle, 144);
    EXPECT(l.box->moved, 15);  // the reset took 16 cycles
    EXPECT(l.board.counters->cycle, 144);
    l.expect_still(30'000);
    l.ask(kWrite, 1), l.answered();
    pollfd bell{l.pl.bell_fd, POLLIN, 0};
    EXPECT(poll(&bell, 1, 0), 0);  // heard: that is what woke it
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
    uint64_t rung = 0;
    l.until("its interrupt, on and off", [&] { return (rung += l.rung()) >= 4; });
    l.pulse = ".ap_done";
    l.until("the run's end", [&] { return l.box->completed == 1; });
    l.until("its bell", [&] { return (rung += l.rung()) >= 5; });
    EXPECT(l.box->runs[1].begin, 144);
    EXPECT(l.box->runs[1].idle, 0);
    l.until_state(kPlAsleep, "the clock stands after a run");
    EXPECT(rung + l.rung(), 5);  // twice where the output changes
    EXPECT(l.box->state, Doing::kIdle);
    const uint64_t end = l.box->runs[1].end, slept = l.page->cycle;
    EXPECT(slept, (end + 1) / 16 * 16 + 16);  // a cycle later it is seen to repeat itself
    EXPECT(l.board.counters->cycle, slept);
}

// What passes while a unit waits for the program belongs to no run.
inline void pl_waits() {
    uint64_t first = 0;
    struct { uint32_t before[3]; std::atomic<uint32_t> state; } sender{{}, 2};  // which runs
    enum Way { kAtOnce, kLater, kBeatByBeat };
    for (const Way way : {kAtOnce, kLater, kBeatByBeat}) {
        uint32_t told = 0;
        std::atomic<uint32_t> changes{0};
        uint64_t looked = 0;
        Logic l(true, [&](Logic& logic, uint64_t cycle) {
            if (hand->get("s_ARVALID")) looked = cycle;
            changes += std::exchange(told, logic.box->state) != told;
        });
        l.until_state(kPlAsleep, "the clock stands where nothing is to be done");
        l.ask(kWrite, 1), l.answered();
        l.until_waits();
        EXPECT(l.box->blocked, 0);
        const uint64_t rested = l.page->cycle;
        if (way == kLater) l.expect_still(30'000);
        const uint32_t before = changes;
        if (way == kLater) {  // a look does not set it to work
            l.ask(kRead, 0), l.answered();
            EXPECT(changes, before + 1);  // that it waits
            EXPECT(looked, rested);
            l.until("it rests again", [&] { return l.page->cycle > rested + 8; });
            usleep(5'000);
            EXPECT(l.page->cycle, rested + 16);
        }
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
        l.until_waits();
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

// Where the sender of half a packet does nothing, the clock goes on: it may depend on that.
inline void pl_gives_up() {
    struct { uint32_t before[3]; std::atomic<uint32_t> state; } sender{{}, 1};
    std::set<uint64_t> told;
    Logic l(true, [&](Logic& logic, uint64_t cycle) {
        if (logic.page->cycle == cycle) told.insert(cycle);
    });
    l.unit->streams()[0]->watch(&sender);
    l.until_state(kPlAsleep, "the clock stands where nothing is to be done");
    l.ask(kWrite, 1), l.answered();
    l.until_waits();
    const uint64_t rested = l.page->cycle;
    put(l.in, 0);
    l.until("it goes on", [&] { return l.page->cycle > rested + 16; });
    l.until_waits();
    const uint64_t later = l.page->cycle;
    sender.state = 2;
    put(l.in, 1);
    l.until("it waits in the packet again", [&] { return l.in.header.tail == 2 && l.page->cycle > later; });
    const uint64_t stands = l.page->cycle;
    usleep(30'000);
    EXPECT(l.page->cycle, stands);
    put(l.in, 3);
    l.end();
    // It stopped once, behind the beat.
    EXPECT(told.count(rested + 1) && *told.upper_bound(rested + 1) > rested + 16, true);
}

// A unit that is started again and again gets 1,024 cycles a nap where nobody has asked for long;
// one that goes on with a run gets them all.
inline void pl_restarts() {
    for (const bool again : {true, false}) {
        uint64_t last = 0, looks = 0, naps = 0;
        std::atomic<uint64_t> asked{0}, unasked{0};
        std::atomic<bool> late{false};
        Logic l(false, [&](Logic&, uint64_t cycle) {
            const uint64_t begin = std::exchange(last, now());
            if (!hand->registers[0] || cycle % 64) return;
            ++looks, naps += last - begin >= 1'000'000;
            if (looks == 160) asked = naps + 1;
            if (asked && !late) looks = 160, naps = 0;
            if (looks == 160 + 801) unasked = naps + 1;
        });
        l.until_state(kPlAsleep, "the clock stands where nothing is to be done");
        l.ask(kWrite, again ? 0x81 : 1), l.answered();
        usleep(250'000);
        late = true;
        l.until("800 looks", [&] { return unasked != 0; });
        EXPECT(asked < 9, true);
        // A busy PC may take its time besides.
        EXPECT(again ? unasked >= 50 && unasked < 400 : unasked < 25, true);
    }
}

// The refreshes of DDR begin with the run of a unit that is alone.
inline void pl_alone() {
    constexpr uint64_t kSecond = 3'100, kOther = 6'010, kThird = 6'500;
    int client = -1;
    uint64_t arrival = 0, read = 0, begun = 0;
    std::vector<uint64_t> slow;  // cycles from a start to the first read that met a refresh
    Logic l(false, [&](Logic& logic, uint64_t) {
        const uint64_t cycle = logic.pl.cycle;
        UnitBox &box = *logic.box, &other = *logic.unused;
        if (client < 0) {
            client = logic.pl.memory->join(0);
            logic.unused_hand->edge = [&] { if (logic.pl.cycle == kThird) ++box.request; };
        }
        if (cycle == kSecond - 8 || cycle == kOther - 8 || cycle == kThird + 2'000) logic.pulse = ".ap_done";
        if (cycle == kSecond) ++box.request;
        if (cycle == kOther) other.operation = kWrite, other.words[0] = other.count = 1, ++other.request;
        if (std::exchange(hand->registers[0], 0)) begun = cycle;
        if (read && arrival != Memory::kNever) {
            logic.pl.memory->taken(client, 1);
            if (begun && arrival - read > 45) slow.push_back(read - std::exchange(begun, 0));
            read = 0;
        }
        if (begun && cycle > begun + 4 && !read) logic.pl.memory->read(client, read = cycle, 8, 1, &arrival);
    });
    l.until_state(kPlAsleep, "the clock stands where nothing is to be done");
    l.ask(kWrite, 1);
    l.until("three runs", [&] { return l.box->completed == 3; });
    l.end();
    EXPECT(slow.size(), 3);
    EXPECT(slow[0], slow[1]);
    EXPECT(slow[2] + 300 < slow[0], true);
}

// A unit that asks for data, and of which nobody can see whether it computes meanwhile, goes on in
// slices of cycles with a rest between two; what it does by itself is an end of that.
inline void pl_slices() {
    constexpr uint64_t kBegins = 192, kByItself = 520'000, kAgain = 520'192, kComes = 600'000;
    // The cycle before which it rests, and for how many ms at least.
    std::map<uint64_t, uint64_t> rests = {{kBegins + 16'384, 20},           {kBegins + 49'152, 40},
                                          {kBegins + 114'688, 80},          {kBegins + 245'760, 160},
                                          {kBegins + 507'904, 160},         {kAgain + 16'384, 20},
                                          {kAgain + 16'384 + 32'768, 40}};
    uint64_t last = 0, rested = 0;
    uint32_t before = kPlFault, behind = kPlFault;  // what the page says
    uint32_t within = 0;                            // and the unit, in a slice
    Logic l(true, [&](Logic& logic, uint64_t cycle) {
        const uint64_t begin = std::exchange(last, now());
        if (const auto rest = rests.find(cycle); rest != rests.end())
            rested += last - begin >= rest->second * 1'000'000;
        if (hand->registers[0]) std::memcpy(hand->state.data(), &cycle, sizeof cycle);  // no two alike
        if (cycle == kBegins + 20'000) within = logic.box->state;
        if (cycle == kByItself) before = logic.page->state;
        if (cycle == kByItself + 65) behind = logic.page->state;
        hand->set("out_TVALID", cycle == kByItself), hand->set("out_TLAST", 1);
        if (cycle == kComes) put(logic.in, 3);
        if (cycle == kComes + 100) logic.pulse = ".ap_done";
    }, 1'000);  // cycles that it may take, without those in which it waits
    l.until_state(kPlAsleep, "the clock stands where nothing is to be done");
    l.ask(kWrite, 1);
    l.until("the run's end", [&] { return l.box->completed == 1; });
    l.end();
    EXPECT(rested, rests.size());
    EXPECT(before == kPlAsleep && behind == kPlRunning, true);
    EXPECT(within, uint32_t(Doing::kRunning));
    EXPECT(l.box->runs[1].end, kComes + 101);
    EXPECT(l.box->runs[1].idle, kComes + 1 - kAgain);
    expect_text(l.stopped, "");
}

// One that asks while it computes has waited only since it has repeated itself.
inline void pl_computes() {
    constexpr uint64_t kComputes = 5'000;
    uint64_t came = 0;
    Logic l(true, [&](Logic&, uint64_t cycle) {
        if (cycle < kComputes) std::memcpy(hand->state.data(), &cycle, sizeof cycle);
        if (!came && hand->get("in_TVALID")) came = cycle;
    });
    l.until_state(kPlAsleep, "the clock stands where nothing is to be done");
    l.ask(kWrite, 1);
    l.until_waits();
    put(l.in, 3);
    l.until("the beat is taken", [&] { return l.in.header.tail == 1; });
    l.pulse = ".ap_done";
    l.ask(kRead, 0);
    l.until("the run's end", [&] { return l.box->completed == 1; });
    l.end();
    const uint64_t since = came - l.box->runs[1].idle;
    EXPECT(kComputes < since && since < kComputes + 80, true);
}

// A beat for a unit that was asleep, whose nets nobody can see: it comes in the next cycle.
inline void pl_wakes() {
    uint64_t came = 0;
    Logic l(true, [&](Logic&, uint64_t cycle) {
        if (!came && hand->get("in_TVALID")) came = cycle;
    }, 0, false);
    l.until_state(kPlAsleep, "the clock stands where nothing is to be done");
    const uint64_t slept = l.page->cycle;
    put(l.in, 3);
    l.until("the beat is taken", [&] { return l.in.header.tail == 1; });
    l.end();
    EXPECT(came, slept);
}

// The board need not wait for a unit that never rests: the process is said to run all the same.
inline void pl_busy() {
    std::atomic<uint64_t> ran{0};
    Logic l(false, [&](Logic& logic, uint64_t cycle) {
        std::memcpy(hand->state.data(), &cycle, sizeof cycle);
        if (!ran && logic.page->state == kPlRunning) ran = cycle;
    });
    l.until("it is said to run", [&] { return ran != 0; });
    l.end();
    EXPECT(ran >= 2'048 && ran < 2'080, true);
}

inline void pl_late() {
    bool at_once = false;
    Logic l(false, [&](Logic& logic, uint64_t cycle) {
        UnitBox& box = *logic.unused;
        // Of the other unit, which has rested, a register is read: it wakes up in this cycle.
        if (cycle == 405) box.operation = kRead, box.count = 1, box.request = 1;
        if (cycle == 406) at_once = logic.unused_hand->get("s_ARVALID");
    }, 500);
    l.until_state(kPlAsleep, "the clock stands where nothing is to be done");
    l.ask(kWrite, 1);
    l.thread.join();
    expect_text(l.stopped.substr(0, 56), "no ap_done in 560 cycles (timeout_cycles = 500). Last ha");
    EXPECT(l.pl.at, 1);
    EXPECT(at_once, true);
}

inline const std::map<std::string, void (*)()>& logic_cases() {
    static const std::map<std::string, void (*)()> cases = {
        {"clock", pl_clock},       {"waits", pl_waits}, {"slices", pl_slices},
        {"computes", pl_computes}, {"late", pl_late},   {"gives_up", pl_gives_up},
        {"restarts", pl_restarts}, {"wakes", pl_wakes}, {"alone", pl_alone},
        {"busy", pl_busy},
    };
    return cases;
}

}  // namespace bench
