// What drives a unit's streams, with the unit's own signals set by hand.
#pragma once

#include <memory>
#include <string>

#include "ring_cases.hpp"
#include "stream_port.hpp"

namespace bench {

// A few signals of a unit; `set` is the unit's part, `get` what the board gives it.
struct Unit {
    Board board;
    FakeModel model;
    std::string prefix;
    uint64_t cycle = 0;

    void add(const std::string& names, uint32_t width) {
        for (size_t at = 0, end; at < names.size(); at = end + 1) {
            end = std::min(names.find(' ', at), names.size());
            model.add(prefix + "_" + names.substr(at, end - at), width, kInput);
        }
    }
    Pin pin(const std::string& name) { return model.pins().need(prefix + "_" + name); }
    void set(const std::string& name, uint64_t value) { pin(name).set(value); }
    uint64_t get(const std::string& name) { return pin(name).get(); }
    void step(rtl::Port& port) {
        port.drive(cycle);
        port.sample(cycle);
        ++cycle;
    }
};

// A stream of a unit and the ring behind it.
struct StreamUnit : Unit {
    Ring ring;
    MemoryMap map{false};
    Memory memory;
    struct { uint32_t before[3], state; } mailbox{};

    StreamUnit(uint32_t width, uint32_t ring_bytes, uint32_t capacity, uint32_t depth)
        : ring(ring_bytes, capacity, depth), memory(map, *preset("pynq-z2"), 100e6, 0, 0) {
        prefix = "t";
        add("TVALID TREADY TLAST", 1), add("TDATA", width), add("TKEEP TSTRB", width / 8);
        add("TUSER", 20), add("TID TDEST", 6);
    }
    std::unique_ptr<DmaFlow> flow(bool to_pl) {
        return std::make_unique<DmaFlow>(memory, 0, to_pl);
    }
    template <class T>
    std::unique_ptr<T> make(bool local, std::unique_ptr<DmaFlow> flow = nullptr) {
        constexpr bool in = std::is_same_v<T, StreamSource>;
        auto port = std::make_unique<T>(
            model.pins(), "t", "unit_0.t", 5, local, ring.words.data(), Chance(1, 0),
            std::move(flow), StreamMeter(board.counters, board.trace, 2, in));
        expect_text(port->name(), "unit_0.t");
        EXPECT(port->index(), 5);
        EXPECT(port->pending(), false);
        return port;
    }
    const DirectionCounters& count(bool in) {
        return in ? board.counters->port(2)->read : board.counters->port(2)->write;
    }
    // In which states of the process at the other end it is said to work.
    std::string working(StreamPort& port) {
        std::string states = port.process_works() ? "?" : "";
        port.watch(nullptr), port.watch(&mailbox);
        for (mailbox.state = 0; mailbox.state < 6; ++mailbox.state)
            if (port.process_works()) states += std::to_string(mailbox.state);
        return states;
    }
};

inline void unit_source(uint32_t width, uint32_t ring_bytes, bool local) {
    StreamUnit u(width, ring_bytes, 16, 3);
    auto port = u.make<StreamSource>(local);
    StreamPort& in = *port;
    const uint32_t nbytes = std::min(width / 8, ring_bytes);
    const uint64_t lanes = nbytes >= 64 ? ~0ull : (1ull << nbytes) - 1;
    auto lanes_of = [&](uint64_t keep) { return keep & (width / 8 >= 64 ? ~0ull : (1ull << width / 8) - 1); };
    EXPECT(in.waits_for_data(), true);
    EXPECT(in.blocked() || in.can_move() || in.has_news() || in.waits_for_process(), false);
    EXPECT(in.hungry(), true);
    u.cycle = 30;
    u.step(in);
    EXPECT(u.get("TVALID"), 0);
    EXPECT(in.blocked() || in.turned(), false);
    u.set("TREADY", 1), u.step(in), u.set("TREADY", 0);
    for (int i = 0; i < 128; ++i) EXPECT(in.blocked(), true), u.step(in);
    EXPECT(in.blocked(), false);
    put(u.ring, 0), put(u.ring, 1);
    EXPECT(in.has_news(), true);
    EXPECT(in.news(), 0);
    const uint64_t came = u.cycle;
    auto offered = [&](uint64_t k) {
        const Numbered n(k, ring_bytes);
        EXPECT(u.get("TVALID"), 1);
        EXPECT(in.hungry() || in.has_news() || in.blocked(), false);
        EXPECT(std::memcmp(u.pin("TDATA").bytes(), n.data.data(), nbytes), 0);
        EXPECT(u.get("TLAST"), n.beat.last);
        EXPECT(u.get("TKEEP"), lanes_of(n.beat.keep[0]));
        EXPECT(u.get("TSTRB"), lanes_of(n.beat.keep[0]));
        if (width > 512)
            EXPECT(std::memcmp(u.pin("TKEEP").bytes(), n.beat.keep, 16) |
                       std::memcmp(u.pin("TSTRB").bytes(), n.beat.keep, 16), 0);
        EXPECT(u.get("TUSER"), n.beat.user & 0xfffff);
        EXPECT(u.get("TID"), n.beat.id & 63);
        EXPECT(u.get("TDEST"), n.beat.dest & 63);
    };
    u.step(in);
    EXPECT(in.news(), local ? 0 : came);
    offered(0);
    EXPECT(in.turned(), true);
    EXPECT(in.turned(), false);
    EXPECT(in.can_move(), false);  // as far as can be said before TREADY was seen
    const uint64_t before = in.last_handshake;
    u.step(in);
    EXPECT(in.news(), local ? 0 : came);
    EXPECT(in.last_handshake, before);
    EXPECT(u.count(true).beats, 0);
    u.set("TREADY", 1), u.step(in);
    EXPECT(in.last_handshake, u.cycle - 1);
    EXPECT(in.can_move(), true);  // the next one
    EXPECT(u.ring.header.tail, local ? 1 : 0);
    in.flush();
    EXPECT(u.ring.header.tail, 1);
    u.step(in);  // the second beat, taken at once
    EXPECT(u.count(true).beats, 2);
    EXPECT(u.count(true).bytes, 2 * nbytes);
    EXPECT(in.can_move(), false);
    EXPECT(in.hungry() && in.blocked(), true);
    // In the middle of a packet the next beat is a matter of microseconds, unless nobody sends.
    EXPECT(in.waits_for_process(), !local);
    u.ring.header.ended = 1;
    EXPECT(in.waits_for_process(), false);
    u.ring.header.ended = 0;
    expect_text(u.working(in), "024");
    put(u.ring, 2), put(u.ring, 3);
    EXPECT(in.waits_for_process(), false);
    u.step(in), u.step(in);
    const uint64_t last = nbytes > 64 ? nbytes : uint64_t(__builtin_popcountll((3 * 3 + 1) & lanes));
    EXPECT(u.count(true).bytes, 3 * nbytes + last);
    EXPECT(u.count(true).transactions, 1);
    EXPECT(in.waits_for_process(), false);  // between packets nothing is expected
    // After a reset the beat that was offered is offered again.
    put(u.ring, 4), u.set("TREADY", 0), u.step(in), offered(4);
    in.reset();
    EXPECT(u.get("TVALID"), 0);
    EXPECT(in.hungry(), true);
    EXPECT(in.blocked() || in.can_move(), false);
    u.step(in), offered(4);
    u.set("TREADY", 1), u.step(in);
    in.reset();
    EXPECT(in.waits_for_process(), false);  // a new packet, as far as the unit is concerned
    // A sender that is reset takes its beat back; the packet ends there.
    put(u.ring, 5), u.step(in), put(u.ring, 6), u.set("TREADY", 0), u.step(in), offered(6);
    in.flush();
    in.turned();
    withdraw(u.ring, 6, 7);
    u.step(in);
    EXPECT(u.get("TVALID"), 0);
    EXPECT(in.turned(), true);
    EXPECT(in.waits_for_process(), false);
    const uint64_t written = u.board.trace->written();
    EXPECT(u.board.trace->at(written - 1).flags, 1);
    EXPECT(u.board.trace->at(written - 1).beats, 2);
    in.cut();
    EXPECT(u.board.trace->written(), written);
    put(u.ring, 8), u.set("TREADY", 1), u.step(in);
    in.cut();
    EXPECT(u.board.trace->written(), written + 1);
    EXPECT(u.board.trace->at(written).id, Numbered(8, 1).beat.dest);
    EXPECT(u.board.trace->at(0).kind, uint8_t(Transfer::stream_in));
}

// With a DMA behind it a packet is expected as far ahead as the DMA reads.
inline void unit_source_of_a_dma() {
    StreamUnit u(64, 8, 1024, 3);
    auto port = u.make<StreamSource>(false, u.flow(true));
    StreamPort& in = *port;
    u.set("TREADY", 1);
    auto run = [&](int cycles) {
        for (; cycles > 0; --cycles) u.memory.tick(u.cycle), u.step(in);
    };
    run(10);
    EXPECT(in.waits_for_process(), false);
    put(u.ring, 0);
    EXPECT(in.waits_for_process(), true);
    for (uint64_t k = 1; k < 128; ++k) put(u.ring, 4 * k);
    EXPECT(in.waits_for_process(), true);
    put(u.ring, 4);
    EXPECT(in.waits_for_process(), false);  // 1024 bytes and one beat more
    const uint64_t begin = u.cycle;
    run(20);
    EXPECT(u.count(true).beats, 0);
    run(40);
    EXPECT(u.count(true).beats > 30, true);
    run(300);
    EXPECT(u.count(true).beats, 129);
    EXPECT(u.board.counters->port(2)->read.busy < u.cycle - begin, true);
    EXPECT(in.waits_for_process(), true);
    put(u.ring, 3);
    EXPECT(in.waits_for_process(), false);  // it ends the packet
    run(5);
    in.reset();
    EXPECT(u.memory.pending(), false);
    run(60);
    EXPECT(u.count(true).beats, 130);
    EXPECT(in.pending(), false);
}

inline void unit_sink(uint32_t width, uint32_t ring_bytes, bool local) {
    StreamUnit u(width, ring_bytes, 16, 3);
    u.ring.header.head = u.ring.header.tail = 100;
    auto port = u.make<StreamSink>(local);
    StreamPort& out = *port;
    const uint32_t nbytes = std::min(width / 8, ring_bytes);
    EXPECT(out.waits_for_data() || out.hungry() || out.blocked() || out.can_move(), false);
    u.cycle = 50;
    u.step(out);
    EXPECT(u.get("TREADY"), 1);
    EXPECT(out.news(), 0);
    EXPECT(out.turned() || out.has_news() || out.waits_for_process(), false);
    auto give = [&](uint64_t k) {
        const Numbered n(k, 128);
        std::memcpy(u.pin("TDATA").bytes(), n.data.data(), nbytes);
        u.set("TKEEP", n.beat.keep[0]);
        if (width > 512) std::memcpy(u.pin("TKEEP").bytes(), n.beat.keep, 16);
        u.set("TUSER", n.beat.user), u.set("TID", n.beat.id), u.set("TDEST", n.beat.dest);
        u.set("TLAST", n.beat.last), u.set("TVALID", 1);
    };
    auto here = [&](uint64_t position, uint64_t k) {
        const Numbered n(k, ring_bytes);
        BeatSide side;
        std::memcpy(&side, u.ring.slot(position), sizeof side);
        const uint64_t lanes = width >= 512 ? ~0ull : (1ull << width / 8) - 1;
        EXPECT(side.keep[0], n.beat.keep[0] & lanes);
        EXPECT(side.keep[1], width == 1024 ? n.beat.keep[1] : 0);
        EXPECT(side.user, n.beat.user & 0xfffff);
        EXPECT(side.id, n.beat.id & 63);
        EXPECT(side.dest, n.beat.dest & 63);
        EXPECT(side.last, n.beat.last);
        EXPECT(std::memcmp(u.ring.slot(position) + Ring::kSide, n.data.data(), nbytes), 0);
        for (uint32_t i = nbytes; i < ring_bytes; ++i)
            EXPECT(u.ring.slot(position)[Ring::kSide + i], 0);
    };
    for (uint32_t i = 0; i < ring_bytes; ++i) u.ring.slot(100)[Ring::kSide + i] = 0xdd;
    give(0), u.step(out);
    here(100, 0);
    EXPECT(out.last_handshake, u.cycle - 1);
    EXPECT(u.ring.header.head, local ? 101 : 100);
    out.flush();
    EXPECT(u.ring.header.head, 101);
    EXPECT(out.can_move(), true);
    give(1), u.step(out), give(2), u.step(out);
    EXPECT(u.count(false).beats, 3);
    EXPECT(u.count(false).bytes, 3 * nbytes);
    EXPECT(out.waits_for_process(), !local);  // a fourth one has no room as long as none is taken
    EXPECT(out.can_move(), false);
    give(4), u.step(out);
    EXPECT(u.get("TREADY"), 0);
    EXPECT(out.blocked(), true);
    EXPECT(out.turned(), true);
    EXPECT(out.turned(), false);
    EXPECT(u.count(false).beats, 3);
    EXPECT(out.has_news(), false);
    expect_text(u.working(out), "023");
    out.flush();
    u.ring.header.tail = 101;
    EXPECT(out.has_news(), true);
    EXPECT(out.waits_for_process(), false);
    const uint64_t came = u.cycle;
    u.step(out);
    EXPECT(out.news(), local ? 0 : came);
    EXPECT(out.turned(), true);
    EXPECT(out.blocked(), false);
    here(103, 4);
    // Who takes beats of a packet takes the rest: from here on all of the ring is open.
    uint64_t k = 4;
    for (int i = 0; i < 12; ++i)
        if (!local) EXPECT(out.can_move(), true), give(k += 4), u.step(out);
    EXPECT(u.count(false).beats, local ? 4 : 16);
    EXPECT(out.can_move(), !local);
    if (!local) {
        give(8), u.step(out);
        EXPECT(out.waits_for_process(), true);
        EXPECT(out.can_move(), false);
        u.ring.header.tail = 110;
    } else {
        u.ring.header.tail = 104;
    }
    give(3), u.step(out);
    EXPECT(u.count(false).transactions, 1);
    EXPECT(u.ring.header.packets, 1);
    EXPECT(u.ring.header.head, local ? 105 : 118);
    // The next packet waits for somebody who takes it.
    if (!local) {
        give(0);
        EXPECT(out.can_move(), false);
        u.step(out);
        EXPECT(out.blocked(), true);
        u.ring.header.tail = 118;
        u.step(out), u.set("TVALID", 0), u.step(out);
        EXPECT(out.blocked() || out.can_move() || out.waits_for_process(), false);
        EXPECT(u.count(false).beats, 19);
    }
    const uint64_t written = u.board.trace->written();
    EXPECT(written, 1);
    give(0), u.step(out);
    out.cut();
    EXPECT(u.board.trace->written(), written + 1);
    EXPECT(u.board.trace->at(written).flags, 1);
    EXPECT(u.board.trace->at(0).kind, uint8_t(Transfer::stream_out));
    out.reset();
    EXPECT(u.get("TREADY"), 0);
    EXPECT(out.blocked() || out.can_move() || out.waits_for_process(), false);
    u.set("TVALID", 0), u.step(out);
    EXPECT(u.get("TREADY"), 1);
}

inline void unit_sink_to_a_dma() {
    StreamUnit u(64, 8, 1024, 512);
    auto port = u.make<StreamSink>(false, u.flow(false));
    StreamPort& out = *port;
    u.set("TVALID", 1), u.set("TKEEP", 0xff);
    auto run = [&](int cycles) {
        for (; cycles > 0; --cycles) u.memory.tick(u.cycle), u.step(out);
    };
    run(100);
    const uint64_t beats = u.count(false).beats;
    EXPECT(beats == 100, true);  // the port's own buffer does not stop a beat a cycle
    EXPECT(out.pending(), true);
    u.set("TLAST", 1), run(1);
    u.set("TVALID", 0);
    EXPECT(out.pending(), true);
    run(100);
    EXPECT(out.pending(), false);
    u.set("TVALID", 1), u.set("TLAST", 0), run(3);
    EXPECT(out.pending(), false);  // too little for a burst
    u.set("TLAST", 1), run(1);
    EXPECT(out.pending(), true);
    out.reset();
    EXPECT(out.pending() || u.memory.pending(), false);
}

// What a DMA has read ahead, or still has to write, is forgotten with a reset.
inline void unit_flow() {
    for (const char* name : {"pynq-z2", "ideal"}) {
        MemoryMap map(false);
        Memory memory(map, *preset(name), 100e6, 0, 0);
        DmaFlow in(memory, 0, true), out(memory, 1, false);
        uint64_t cycle = 0;
        auto read = [&](uint64_t waiting, int cycles) {
            for (; cycles > 0; --cycles) memory.tick(cycle), in.offer(cycle++, waiting);
        };
        EXPECT(in.can_take(0), true);
        EXPECT(in.can_take(1), false);
        read(300, 100);
        EXPECT(in.can_take(300), true);
        EXPECT(in.can_take(301), false);  // no more than waits in the ring
        EXPECT(in.pending(), false);
        in.take(100);
        EXPECT(in.can_take(200) && !in.can_take(201), true);
        read(200, 100);
        EXPECT(in.can_take(201), false);
        in.reset();
        EXPECT(in.can_take(1), false);
        read(2000, 1);
        EXPECT(in.pending(), true);
        in.reset();
        EXPECT(in.pending() || memory.pending(), false);
        read(2000, 400);
        EXPECT(in.can_take(1024), true);  // its buffer: 1024 bytes, in bursts of 128
        EXPECT(in.can_take(1025), false);
        in.take(1), read(2000, 100);
        EXPECT(in.can_take(1023 + 128), true);
        in.take(5000);
        EXPECT(in.can_take(1), false);
        in.reset();
        auto wait = [&](int cycles) { for (; cycles > 0; --cycles) memory.tick(cycle++); };
        EXPECT(out.can_give(1024), true);
        EXPECT(out.can_give(4096), true);  // a beat that is wider than the buffer, by itself
        out.give(cycle, 24, false);
        EXPECT(out.pending(), false);
        EXPECT(out.can_give(1000), true);
        EXPECT(out.can_give(1001), false);
        out.give(cycle, 103, false);
        EXPECT(out.pending(), false);
        out.give(cycle, 1, false);  // 128 bytes: a burst
        EXPECT(out.pending(), true);
        wait(100);
        EXPECT(out.pending(), false);
        out.give(cycle, 9, true);
        EXPECT(out.pending(), true);
        wait(100);
        EXPECT(out.pending(), false);
        for (int i = 0; i < 8; ++i) out.give(cycle, 128, false);
        EXPECT(out.can_give(1), false);
        out.give(cycle, 1, true);
        out.reset();
        EXPECT(out.pending() || memory.pending(), false);
        EXPECT(out.can_give(1024), true);
    }
}

inline void unit_meter(bool in) {
    Board board;
    EXPECT(board.counters->cycle, 0);
    StreamMeter meter(board.counters, board.trace, 1, in);
    const DirectionCounters& count =
        in ? board.counters->port(1)->read : board.counters->port(1)->write;
    uint64_t cycle = 90;
    auto sample = [&](bool valid, bool ready, bool last = false) {
        meter.sample(cycle, valid, ready, 4, last, 1000 + cycle, uint32_t(cycle % 8));
        ++cycle;
    };
    auto counted = [&](uint64_t busy, uint64_t design, uint64_t memory) {
        EXPECT(count.busy, busy);
        EXPECT(count.stall_design, design);
        EXPECT(count.stall_memory, memory);
    };
    // Before a packet only who offers a beat waits.
    sample(true, false), sample(false, true), sample(false, false);
    counted(0, in, !in);
    meter.cut();
    EXPECT(board.trace->written(), 0);
    sample(true, true);  // cycle 93
    sample(false, true), sample(false, true), sample(true, false), sample(false, false);
    counted(5, 2, 2);
    sample(true, true, true);  // cycle 98
    counted(6, 2, 2);
    EXPECT(count.beats * 100 + count.bytes, 208);
    EXPECT(count.transactions * 100 + count.latency_sum * 10 + count.latency_max, 155);
    const TransactionRecord& r = board.trace->at(0);
    EXPECT(board.trace->written(), 1);
    EXPECT(r.begin * 1000 + r.first, 93093);
    EXPECT(r.end * 10000 + r.value, 981093);
    EXPECT(r.id * 10000 + r.port * 1000 + r.beats * 100 + r.bytes, 51208);
    EXPECT(r.kind, uint8_t(in ? Transfer::stream_in : Transfer::stream_out));
    EXPECT(r.burst * 10 + r.flags, 10);
    EXPECT(r.stalls, in ? 1 : 2);
    sample(true, true), sample(true, true);
    meter.cut(), meter.cut();
    EXPECT(board.trace->written(), 2);
    EXPECT(board.trace->at(1).flags * 1000 + board.trace->at(1).beats * 100 + board.trace->at(1).bytes, 1208);
    EXPECT(board.trace->at(1).stalls, 0);
    EXPECT(count.transactions, 1);
    // A packet without an end has a record every million beats.
    for (uint32_t i = 1; i < 1u << 20; ++i) sample(true, true);
    EXPECT(board.trace->written(), 2);
    sample(true, true);
    EXPECT(board.trace->written(), 3);
    EXPECT(board.trace->at(2).beats, 1u << 20);
    EXPECT(board.trace->at(2).flags, 1);
}

}  // namespace bench
