// What a compute unit says it is doing, and what it counts, cycle by cycle.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "hand_model.hpp"
#include "ring_cases.hpp"
#include "unit.hpp"

namespace bench {

// A unit after its reset; the first cycle after it is 16.
struct Rig {
    Board board;
    std::unique_ptr<UnitBox> box = std::make_unique<UnitBox>();
    uint64_t cycle = 0, since = rtl::Unit::kNever;
    Ring in{8, 16, 3}, out{8, 16, 3};
    std::unique_ptr<rtl::Unit> unit;

    explicit Rig(bool seen = true, bool control = true, bool streams = false, bool chain = false,
                 uint64_t timeout = 0) {
        hand_setup = {.seen = seen, .chain = chain};
        unit = std::make_unique<rtl::Unit>("unit_0", "", box.get(), 3, kOnes, 0, timeout);
        unit->set_clock("ap_clk"), unit->set_clock("aux_clk");
        unit->add_reset("ap_rst_n", false), unit->add_reset("ap_rst", true);
        unit->set_interrupt("interrupt");
        unit->follow(&since);
        const Pins& pins = unit->pins();
        if (control) {
            unit->add(std::make_unique<LiteManager>(pins, "s", "unit_0.s", 0, board.trace), "s");
            unit->set_control(0);
        }
        if (streams) {
            unit->add(std::make_unique<StreamSource>(pins, "in", "unit_0.in", 0, false, in.words.data(),
                                                     Chance(1, 0), nullptr,
                                                     StreamMeter(board.counters, board.trace, 1, true)),
                      "in");
            unit->add(std::make_unique<StreamSink>(pins, "out", "unit_0.out", 1, false, out.words.data(),
                                                   Chance(1, 0), nullptr,
                                                   StreamMeter(board.counters, board.trace, 2, false)),
                      "out");
        }
        if (seen) hand->set(".ap_idle", 1);
        unit->begin_reset();
        run(rtl::Unit::kResetCycles);
    }
    void step() {
        unit->low(cycle);
        unit->sample(cycle);
        unit->high(cycle);
        ++cycle;
    }
    void run(uint64_t cycles) {
        while (cycles-- > 0) step();
    }
    // A net or port that is high for one cycle.
    void pulse(const std::string& name) {
        hand->set(name, 1), step(), hand->set(name, 0);
    }
    void ask(Operation operation, uint32_t offset = 0, uint32_t count = 1, uint32_t slave = 0) {
        box->operation = operation, box->offset = offset, box->count = count, box->slave = slave;
        ++box->request;
    }
    uint32_t answer() {
        EXPECT(unit->asked() && unit->asked_anew(), true);
        uint64_t left = 200;
        while (!unit->serve(cycle) && --left) EXPECT(unit->asked_anew(), false), step();
        EXPECT(unit->asked(), left == 0);
        return box->result;
    }
    void write(uint32_t offset, uint32_t value) {
        box->words[0] = value;
        ask(kWrite, offset);
        EXPECT(answer(), kAnswered);
    }
    uint32_t read(uint32_t offset) {
        ask(kRead, offset);
        EXPECT(answer(), kAnswered);
        return box->words[0];
    }
    Doing told(const StreamPort* waits = nullptr) {
        unit->publish(cycle, waits);
        return Doing(box->state.load());
    }
    const RunRecord& record() { return box->runs[box->completed % kRunsKept]; }
};

inline std::string refused(const std::function<void()>& call) {
    try {
        call();
    } catch (const std::runtime_error& error) { return error.what(); }
    return "";
}

inline void pl_made() {
    auto box = std::make_unique<UnitBox>();
    auto make = [&](HandSetup setup, const char* library) {
        hand_setup = setup;
        return refused([&] { rtl::Unit("u", library, box.get(), 1, 0, 0, 0); });
    };
    expect_text(make({.version = kModelVersion + 1}, ""), "the model was built for another engine");
    expect_text(make({.memory = false}, ""), "no memory for the model");
    expect_text(make({}, "libc.so.6"), "libc.so.6 is no model of a kernel");
    expect_text(make({}, "/nowhere").substr(0, 30), "the model cannot be loaded: /n");
    expect_text(make({.seen = false}, ""), "");
    EXPECT(box->watched, false);
    Rig r;
    EXPECT(r.box->watched && r.unit->seen() && !r.unit->free_running(), true);
    EXPECT(hand->seed * 10 + hand->fill, 31);
    EXPECT(r.box->nphases, 2);
    expect_text(std::string(r.box->phase_names[0]) + r.box->phase_names[1], "loadstore");
    r.unit->add_alias("s_axi_data_RDATA", "s_RDATA");
    EXPECT(r.unit->pins().need("s_axi_data_RDATA").bytes() == hand->pin("s_RDATA").bytes(), true);
    expect_text(refused([&] { r.unit->add_alias("x", "y"); }), "the model has no signal y");
    r.unit->set_constant("in_TDATA", 77);
    EXPECT(hand->get("in_TDATA"), 77);
    EXPECT(Rig(true, false).unit->free_running(), true);
    Rig broken;
    hand->fails = "an assertion";
    expect_text(refused([&] { broken.step(); }), "an assertion");
}

inline void pl_reset() {
    Rig r(true, true, true);
    EXPECT(hand->edges, 16);
    for (const int again : {0, 1}) {
        EXPECT(hand->get("ap_rst_n") && !hand->get("ap_rst"), true);
        EXPECT(hand->get("aux_clk"), 1);
        hand->set(".ap_start", 1), r.step(), hand->set(".ap_start", 0);
        EXPECT(r.unit->counting(), true);
        r.unit->publish(r.cycle, r.unit->streams()[0]);
        EXPECT(r.unit->said_to_wait_on() == r.unit->streams()[0], true);
        EXPECT(r.box->blocked, 0);
        EXPECT(r.box->started, 1);
        r.run(40);  // it repeats itself, and a reset is an end of that
        put(r.in, 0);
        if (again) r.ask(kReset), EXPECT(r.unit->serve(r.cycle), false);
        else r.unit->begin_reset();
        EXPECT(r.box->started, 0);
        for (int i = 0; i < 16; ++i) {
            EXPECT(!hand->get("ap_rst_n") && hand->get("ap_rst"), true);
            EXPECT(hand->get("in_TVALID"), 0);
            EXPECT(r.unit->counting() || r.unit->running() || r.unit->said_to_wait_on(), false);
            EXPECT(r.unit->active(r.cycle + 1000) && r.told() == Doing::kRunning, true);
            EXPECT(r.unit->serve(r.cycle), false);
            r.step();
        }
        EXPECT(r.unit->serve(r.cycle), bool(again));
        EXPECT(r.unit->repeats(), false);
        EXPECT(r.unit->stirs(), false);
        EXPECT(r.unit->stirred(), r.cycle - 1);
        expect_text(r.unit->last_activity(r.cycle + 1),
                    "Last handshakes: s 2 cycles ago, in 2 cycles ago, out 2 cycles ago.");
        r.told();
        EXPECT(r.box->moved, r.cycle - 1);
        EXPECT(r.box->moved_port, ~0u);
        hand->set("in_TREADY", 1), r.step(), hand->set("in_TREADY", 0);
        EXPECT(r.unit->stirs(), true);
        EXPECT(r.unit->stirs(), false);
        EXPECT(r.unit->stirred(), r.cycle - 1);
        r.told();
        EXPECT(r.box->moved_port, 1);
    }
}

inline void pl_requests() {
    Rig r;
    r.ask(kRead, 0, 1, 1);
    EXPECT(r.answer(), kNobody);
    EXPECT(r.box->response, r.box->request);
    for (uint32_t i = 0; i < 3; ++i) r.box->words[i] = 100 + i;
    r.ask(kWrite, 0x10, 3);
    EXPECT(r.unit->asked_to_change(), true);
    const uint64_t begin = r.cycle;
    EXPECT(r.answer(), kAnswered);
    EXPECT(r.cycle - begin, 12);
    EXPECT(r.board.trace->written(), 3);
    r.box->words[0] = 200;
    r.ask(kReplay, 0x14);
    EXPECT(r.answer(), kAnswered);
    EXPECT(r.board.trace->written(), 3);  // of a write of the board's own there is none
    r.ask(kRead, 0x10, 3);
    EXPECT(r.unit->asked_to_change(), false);
    EXPECT(r.answer(), kAnswered);
    EXPECT(r.box->words[0] + 1000 * r.box->words[1] + 1000000 * r.box->words[2], 102200100);
    r.ask(kRead, 0x3c, 3);
    r.box->words[1] = r.box->words[2] = 9;
    EXPECT(r.answer(), kRefused);
    EXPECT(r.box->words[2], 9);  // not asked for any more
    EXPECT(r.unit->stirred(), 15);
    r.told();
    EXPECT(r.box->moved > begin && r.box->moved_port == 0, true);
}

inline void pl_runs() {
    Rig r;
    EXPECT(r.told(), 1);  // State.IDLE of the board; RUNNING, WAIT_READ and WAIT_WRITE follow it
    const uint64_t begin = r.cycle, begin_ns = now_ns();
    r.write(0, 1), usleep(2'000);
    EXPECT(r.unit->just_started(), true);
    EXPECT(r.unit->just_started() || r.unit->auto_restarts(), false);
    EXPECT(r.unit->running() && r.unit->counting() && r.told() == Doing::kRunning, true);
    EXPECT(r.box->begun, begin);
    EXPECT(r.box->started, 1);
    hand->set(".perf_load", 1), r.run(3), hand->set(".perf_load", 0);
    r.unit->begin_idle();
    r.pulse(".perf_load");
    r.unit->end_idle(7);
    r.pulse(".ap_ready");
    EXPECT(r.unit->counting(), true);
    const uint64_t second = r.cycle;
    r.pulse(".ap_start");  // while the first one goes on
    EXPECT(r.unit->just_started(), false);
    r.pulse(".perf_store");
    EXPECT(r.told() == Doing::kRunning && r.box->started == 2 && r.box->begun == begin, true);
    EXPECT(r.unit->finished(), false);
    const uint64_t end = r.cycle;
    r.pulse(".ap_done");
    EXPECT(r.unit->finished(), true);
    EXPECT(r.unit->finished(), false);
    EXPECT(r.box->completed, 1);
    EXPECT(r.record().number + r.record().idle * 10, 71);
    EXPECT(r.record().begin, begin);
    EXPECT(r.record().end, end);
    EXPECT(r.record().phases[0] * 10 + r.record().phases[1], 31);
    const uint64_t first_ns = r.record().ns, end_ns = now_ns();
    EXPECT(first_ns >= 2'000'000 && first_ns <= end_ns - begin_ns, true);
    r.told();
    EXPECT(r.box->begun, second);
    EXPECT(r.box->started, 2);
    hand->set(".perf_load", 1);
    r.pulse(".ap_done");  // its ap_ready comes with its end
    hand->set(".perf_load", 0);
    EXPECT(r.box->completed, 2);
    EXPECT(r.record().begin * 1000 + r.record().end, second * 1000 + r.cycle - 1);
    EXPECT(r.record().idle + r.record().phases[0] * 10 + r.record().phases[1], 10);
    EXPECT(first_ns + r.record().ns <= now_ns() - begin_ns, true);
    EXPECT(r.unit->running() || r.unit->counting() || r.told() != Doing::kIdle, false);
    r.pulse(".ap_done");  // without a run
    EXPECT(r.box->completed, 2);
    hand->set(".ap_idle", 0);
    EXPECT(r.unit->running() && !r.unit->counting() && r.told() == Doing::kRunning, true);
    hand->set(".ap_idle", 1);
    r.write(0, 0x81);
    EXPECT(r.unit->auto_restarts() && r.unit->just_started(), true);
    r.write(4, 0), r.write(0, 1);  // one that has been asked for already
    EXPECT(r.unit->auto_restarts() || r.unit->just_started(), false);
    EXPECT(r.unit->irq_changed() || r.box->irq, false);
    r.pulse("interrupt");
    EXPECT(r.unit->irq_changed() && r.unit->publish(r.cycle, nullptr) && r.box->irq, true);
    EXPECT(r.unit->irq_changed() || r.unit->publish(r.cycle, nullptr), false);
    r.step();
    EXPECT(r.unit->publish(r.cycle, nullptr) && !r.box->irq, true);
    for (const bool chain : {false, true}) {
        Rig c(true, true, false, chain);
        c.pulse(".ap_start"), c.pulse(".ap_ready"), c.pulse(".ap_start"), c.pulse(".ap_ready");
        hand->set(".ap_done", 1), c.run(3), hand->set(".ap_done", 0);
        EXPECT(c.box->completed, chain ? 1 : 2);  // ap_done is held until ap_continue
        c.step(), c.pulse(".ap_done");
        EXPECT(c.box->completed, 2);
    }
}

// A unit whose end nobody sees but the program, which reads ap_done.
inline void pl_unseen() {
    for (const uint32_t word : {2u, 4u, 6u}) {
        Rig r(false);
        r.write(0, 1);
        EXPECT(r.unit->counting() && !r.unit->running() && !r.unit->auto_restarts(), true);
        EXPECT(r.told(), 2);
        hand->registers[0] = 5, r.read(0);
        hand->registers[4] = word, r.read(4);
        EXPECT(r.unit->counting(), true);
        if (word == 4) r.since = r.cycle - 3;
        hand->registers[0] = word, r.read(0);
        EXPECT(r.unit->counting() || !r.unit->finished(), false);
        EXPECT(r.record().begin * 1000 + r.record().end, 16 * 1000 + r.cycle);
        EXPECT(r.record().idle, word == 4 ? 3 + 4 : 0);
        r.read(0);
        EXPECT(r.box->completed, 1);
        EXPECT(r.told(), Doing::kIdle);
    }
    Rig idle(false);
    idle.write(0, 0), idle.write(0, 0x80);  // without the start bit nothing starts
    EXPECT(idle.unit->counting() || idle.unit->just_started(), false);
}

inline void pl_rest() {
    for (const bool seen : {true, false}) {
        Rig r(seen);
        r.run(16);
        EXPECT(r.unit->repeats(), false);
        r.step();  // the second look, 17 cycles after the reset
        EXPECT(r.unit->repeats(), true);
        EXPECT(r.unit->idles(), !seen);
        EXPECT(r.unit->quiet(15 + 127) || !r.unit->active(15 + 127), false);
        EXPECT(r.unit->quiet(15 + 128), true);
        EXPECT(r.unit->active(15 + 128), false);
        r.ask(kRead);
        EXPECT(r.unit->active(15 + 128) && !r.unit->idles(), true);
        const uint64_t begin = r.cycle;
        r.answer();
        EXPECT(r.unit->active(begin + 127), begin < 15 || !seen || begin + 127 < 15 + 128);
        EXPECT(r.unit->repeats(), false);  // an input changed
        EXPECT(r.unit->quiet(r.cycle + 128), seen);  // a seen one is at rest for all that
        if (seen) {
            r.run(40), r.write(0, 1), r.run(200), r.pulse(".ap_done");
            for (int i = 0; i < 200; ++i) ++hand->state[0], r.step();
            EXPECT(r.unit->quiet(r.cycle), false);  // it goes on behind the end of its run
        }
        Rig busy(seen);
        for (int i = 0; i < 300; ++i) ++hand->state[i % 8], busy.step();
        EXPECT(busy.unit->repeats() || busy.unit->quiet(busy.cycle), false);
        const uint64_t late = 15 + (seen ? 1u << 20 : 1u << 25);
        EXPECT(busy.unit->quiet(late - 1), false);
        EXPECT(busy.unit->quiet(late), true);
        if (!seen) continue;
        busy.write(0, 1), busy.run(500);
        EXPECT(busy.unit->repeats() || busy.unit->idles(), false);  // no state is looked at in a run
        EXPECT(busy.unit->active(~uint64_t(0) >> 1), true);
        busy.pulse(".ap_done"), busy.run(17);
        EXPECT(busy.unit->repeats(), true);
    }
}

inline void pl_streams() {
    for (const bool seen : {true, false}) {
        Rig r(seen, true, true);
        StreamPort *in = r.unit->streams()[0], *out = r.unit->streams()[1];
        EXPECT(r.unit->waits_on() || r.unit->listens() == seen || r.unit->news(), false);
        r.pulse("in_TREADY");
        EXPECT(r.unit->waits_on() == in && r.unit->listens(), true);
        EXPECT(r.unit->waits(15 + 127), false);
        EXPECT(r.unit->waits(15 + 128), true);
        r.run(130);
        EXPECT(r.unit->repeats() && !r.unit->waits_on() == seen, true);
        EXPECT(r.unit->waits(r.cycle), !seen);
        if (seen) r.pulse(".ap_start");
        else r.write(0, 1);
        r.run(40);
        EXPECT(r.unit->waits_on() == in && r.unit->waits(r.cycle), true);  // it only repeats itself
        EXPECT(r.told(in), 3);
        EXPECT(r.unit->said_to_wait_on() == in, true);
        EXPECT(r.unit->streams_can_move() || r.unit->waits_for_process(), false);
        put(r.in, 0);
        EXPECT(r.unit->streams_can_move(), true);
        const uint64_t came = r.cycle;
        r.step();
        EXPECT(r.unit->news(), came);
        EXPECT(r.unit->repeats() || r.unit->waits_on() || r.unit->streams_can_move(), false);
        r.pulse("in_TREADY"), r.step();
        EXPECT(r.unit->stirred() + 2 == r.cycle && r.unit->stirs(), true);
        // In the middle of the packet, while its sender is said to run or not.
        EXPECT(r.unit->waits_for_process() && !r.unit->process_works(), true);
        struct { uint32_t before[3], state; } mailbox{{}, 2};
        in->watch(&mailbox);
        EXPECT(r.unit->process_works(), true);
        put(r.in, 3), r.step(), r.pulse("in_TREADY");
        const uint64_t read = r.cycle - 1;
        EXPECT(r.unit->waits_for_process() || r.unit->process_works(), false);
        hand->set("out_TVALID", 1);
        r.run(130);
        EXPECT(r.unit->waits_on() == out && uint32_t(r.told(out)) == 4, true);
        EXPECT(r.box->blocked, 1);
        expect_text(r.unit->last_activity(r.cycle),
                    "Last handshakes: s " + std::to_string(r.cycle - (seen ? 15 : 148)) +
                        " cycles ago, in " + std::to_string(r.cycle - read) +
                        " cycles ago, out 128 cycles ago; it waits on unit_0.out for room.");
        EXPECT(r.out.header.head, 0);
        r.unit->flush();
        EXPECT(r.out.header.head, 3);
    }
    Rig f(true, false, true);
    f.pulse("in_TREADY");
    EXPECT(f.unit->running() || f.unit->counting(), false);
    EXPECT(f.told(), Doing::kRunning);
    f.unit->publish(f.cycle, f.unit->streams()[0]);
    EXPECT(f.unit->said_to_wait_on() == f.unit->streams()[0], true);
    Rig none(true, true, true);
    none.told(none.unit->streams()[0]);
    EXPECT(none.unit->said_to_wait_on() == nullptr, true);
    put(none.in, 0);
    EXPECT(none.unit->streams_can_move(), false);  // it does not run
    none.pulse("in_TREADY");
    none.step();
}

inline void pl_time() {
    Rig r(true, true, false, false, 100);
    r.run(300);
    r.unit->check_time(r.cycle + 1000);
    const uint64_t begin = r.cycle;
    r.write(0, 1);
    r.unit->check_time(begin + 100);
    expect_text(refused([&] { r.unit->check_time(begin + 101); }),
                "no ap_done in 101 cycles (timeout_cycles = 100). Last handshakes: s " +
                    std::to_string(begin + 101 - (r.cycle - 3)) + " cycles ago.");
    r.unit->excuse(10), r.unit->excuse(5);
    r.unit->check_time(begin + 115);
    EXPECT(refused([&] { r.unit->check_time(begin + 116); }).empty(), false);
    r.pulse(".ap_ready");
    const uint64_t second = r.cycle;
    r.pulse(".ap_start");  // what was excused is the first one's no more
    r.unit->check_time(begin + 100);
    EXPECT(refused([&] { r.unit->check_time(begin + 101); }).empty(), false);
    r.pulse(".ap_done");
    r.unit->check_time(second + 100);
    EXPECT(refused([&] { r.unit->check_time(second + 101); }).empty(), false);
    r.pulse(".ap_done"), r.write(0, 0x81);
    r.unit->check_time(r.cycle + 1000);  // one that is started again and again has no end
    Rig unseen(false, true, false, false, 100);
    unseen.write(0, 1), hand->registers[0] = 1;
    unseen.unit->check_time(unseen.cycle + 1000);  // it may have ended long ago
    unseen.run(110), unseen.read(0);
    EXPECT(refused([&] { unseen.unit->check_time(unseen.cycle); }).empty(), false);
    Rig unlimited;
    unlimited.write(0, 1), unlimited.unit->check_time(1u << 30);
}

inline const std::map<std::string, void (*)()>& pl_cases() {
    static const std::map<std::string, void (*)()> cases = {
        {"made", pl_made},     {"reset", pl_reset}, {"requests", pl_requests}, {"runs", pl_runs},
        {"unseen", pl_unseen}, {"rest", pl_rest},   {"streams", pl_streams},   {"time", pl_time},
    };
    return cases;
}

}  // namespace bench
