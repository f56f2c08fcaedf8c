// The ends of a stream's ring, each against a ring that is written and read by hand.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../burst.hpp"
#include "part_cases.hpp"
#include "ring_end.hpp"

namespace bench {

using namespace pynq_torch;
using End = pynq_torch::Port;

// A ring as streams.py lays it out: 64 bytes of header, slots of 40 bytes and the data, in words.
struct Ring {
    static constexpr size_t kHeader = 64, kSide = 40;
    size_t data_bytes, stride;
    std::vector<uint64_t> words;
    RingHeader& header;

    Ring(uint32_t data, uint32_t capacity, uint32_t depth, uint64_t begin = 0)
        : data_bytes(data), stride((kSide + data + 7) / 8 * 8),
          words((kHeader + capacity * stride) / 8), header(*new (words.data()) RingHeader{}) {
        header.data_bytes = data;
        header.capacity = capacity, header.depth = depth;
        header.head = header.tail = begin;
    }
    unsigned char* slot(uint64_t position) {
        return reinterpret_cast<unsigned char*>(words.data()) + kHeader +
               position % header.capacity * stride;
    }
    uint64_t left() const { return header.head - header.tail; }
    // How often the other side was woken since this was asked last, where one sleeps.
    uint32_t rung() { return header.signal.exchange(0); }
};

// Beat number k: all that a beat carries depends on k.
struct Numbered {
    std::vector<unsigned char> data;
    Beat beat;

    Numbered(uint64_t k, size_t nbytes) : data(nbytes) {
        for (size_t i = 0; i < nbytes; ++i) data[i] = uint8_t(k * 7 + i);
        beat.data = data.data();
        beat.keep[0] = 3 * k + 1, beat.keep[1] = ~k;
        beat.user = k << 33 | k, beat.id = uint32_t(k) + 5, beat.dest = uint32_t(k) + 9;
        beat.last = k % 4 == 3;
    }
};

inline void expect_beat(const Beat& got, uint64_t k, size_t nbytes) {
    const Numbered want(k, nbytes);
    EXPECT(got.keep[0], want.beat.keep[0]);
    EXPECT(got.keep[1], want.beat.keep[1]);
    EXPECT(got.user, want.beat.user);
    EXPECT(got.id, want.beat.id);
    EXPECT(got.dest, want.beat.dest);
    EXPECT(got.last, want.beat.last);
    EXPECT(std::memcmp(got.data, want.data.data(), nbytes), 0);
}
inline void expect_written(Ring& ring, uint64_t position, uint64_t k) {
    BeatSide side;
    std::memcpy(&side, ring.slot(position), sizeof side);
    Beat got;
    got.data = ring.slot(position) + Ring::kSide;
    got.keep[0] = side.keep[0], got.keep[1] = side.keep[1];
    got.user = side.user, got.id = side.id, got.dest = side.dest, got.last = side.last != 0;
    EXPECT(side.last <= 1, true);
    EXPECT(side.withdrawn, 0);
    expect_beat(got, k, ring.data_bytes);
}
inline void put(Ring& ring, uint64_t k) {
    const Numbered n(k, ring.data_bytes);
    const BeatSide side{{n.beat.keep[0], n.beat.keep[1]}, n.beat.user, n.beat.id,
                        n.beat.dest, n.beat.last, 0};
    std::memcpy(ring.slot(ring.header.head), &side, sizeof side);
    std::memcpy(ring.slot(ring.header.head) + sizeof side, n.data.data(), n.data.size());
    ++ring.header.head;
}
inline void withdraw(Ring& ring, uint64_t from, uint64_t to) {
    ring.header.withdrawn = to;
    for (; from < to; ++from) ring.slot(from)[offsetof(BeatSide, withdrawn)] = 1;
}

struct Observer : WaitObserver {
    std::string said;
    bool abort = false;
    std::atomic<bool> is_stale{false};
    void blocked(int port, bool data) override {
        said += (data ? "r" : "w") + std::to_string(port);
    }
    void unblocked() override { said += "."; }
    bool aborted() override { return abort; }
    bool stale() override { return is_stale; }
};

// What a side does that has to wait, while nothing comes: "" when it does not wait.
inline std::string waits(Ring& ring, Observer& observer, const std::function<void()>& call) {
    observer.said.clear();
    observer.abort = true;
    std::string end;
    try {
        call();
    } catch (const Aborted&) { end = "!"; }
    observer.abort = false;
    EXPECT(ring.header.sleepers, 0);
    return observer.said + end;
}
inline void ring_port() {
    for (const uint32_t nbytes : {1u, 5u, 8u, 64u}) {
        Ring ring(nbytes, 8, 3, 21);
        Observer sends, takes;
        End out, in, none;
        EXPECT(none.attached(), false);
        out.attach(ring.words.data(), 2, &sends), in.attach(ring.words.data(), 4, &takes);
        EXPECT(out.attached(), true);
        EXPECT(out.data_bytes, nbytes);
        uint64_t written = 0, read = 0;
        std::vector<unsigned char> room(nbytes);
        Beat beat;
        beat.data = room.data();
        for (int turn = 0; turn < 3; ++turn) {
            for (; written - read < 8; ++written) {
                EXPECT(out.full(), false);
                EXPECT(out.try_write(Numbered(written, nbytes).beat), true);
                expect_written(ring, 21 + written, written);
                EXPECT(in.size(), written + 1 - read);
                EXPECT(in.empty(), false);
            }
            EXPECT(out.full(), true);
            EXPECT(out.try_write(Numbered(99, nbytes).beat), false);
            EXPECT(out.moved(), written);
            EXPECT(ring.header.packets, written / 4);
            for (const uint64_t end = turn < 2 ? read + 5 : written; read < end; ++read) {
                EXPECT(in.try_read(beat), true);
                expect_beat(beat, read, nbytes);
                EXPECT(in.beats_read(), 22 + read);
            }
            EXPECT(in.moved(), read);
        }
        EXPECT(in.empty(), true);
        EXPECT(out.empty(), true);
        EXPECT(in.try_read(beat), false);
        expect_text(waits(ring, takes, [&] { in.read(beat); }), "r4!");
        // Arguments that change, before the sleep and during it.
        for (const bool asleep : {false, true}) {
            takes.is_stale = !asleep;
            std::thread late([&] {
                while (asleep && ring.header.sleepers == 0) usleep(100);
                takes.is_stale = true;
            });
            bool noticed = false;
            try {
                in.read(beat);
            } catch (const Relatch&) { noticed = true; }
            late.join();
            EXPECT(noticed, true);
            EXPECT(ring.header.sleepers, 0);
            expect_text(takes.said, asleep ? "r4r4." : "r4");
        }
        takes.is_stale = false;
    }
}

inline void ring_waits() {
    Ring ring(4, 8, 3);
    Observer sends, takes;
    End out, in;
    out.attach(ring.words.data(), 0, &sends), in.attach(ring.words.data(), 1, &takes);
    unsigned char room[4];
    Beat beat;
    beat.data = room;
    // Who only reads has nothing to drain; a sender waits until the FIFO behind it holds the rest.
    expect_text(waits(ring, takes, [&] { in.drain(); }), "");
    for (uint64_t k = 0; k < 3; ++k) out.write(Numbered(k, 4).beat);
    expect_text(waits(ring, sends, [&] { out.drain(); }), "");
    out.write(Numbered(3, 4).beat);
    expect_text(waits(ring, sends, [&] { out.drain(); }), "w0!");
    expect_text(waits(ring, takes, [&] { in.drain(); }), "");
    for (uint64_t k = 4; k < 8; ++k) out.write(Numbered(k, 4).beat);
    expect_text(waits(ring, sends, [&] { out.write(Numbered(8, 4).beat); }), "w0!");
    EXPECT(ring.left(), 8);
    // With another side that comes late.
    sends.said.clear();
    std::thread late([&] {
        while (ring.header.sleepers == 0) usleep(100);
        EXPECT(ring.header.sleepers, 1);
        for (uint64_t k = 0; k < 2; ++k) in.read(beat), expect_beat(beat, k, 4);
    });
    out.write(Numbered(8, 4).beat);
    late.join();
    expect_text(sends.said, "w0.");
    EXPECT(ring.header.sleepers, 0);
    expect_written(ring, 8, 8);
    // Nobody is woken where nobody sleeps; who sleeps hears at once of what is urgent: the end of a
    // packet, a ring that is half full, one that is half empty or in which the FIFO holds the rest.
    ring.header.head = ring.header.tail = 16;
    ring.rung();
    for (uint64_t k : {3, 0, 1, 2}) out.try_write(Numbered(k, 4).beat);
    for (int k = 0; k < 4; ++k) in.try_read(beat);
    EXPECT(ring.rung(), 0);
    ring.header.sleepers = 1;
    auto write = [&](uint64_t k) { return out.try_write(Numbered(k, 4).beat), ring.rung(); };
    auto read = [&] { return in.try_read(beat), ring.rung(); };
    usleep(60);
    EXPECT(write(0), 1);  // the first one for a while
    EXPECT(write(3), 1);
    EXPECT(write(3), 1);
    EXPECT(write(1), 1);  // half full
    for (int k = 0; k < 4; ++k) write(0);
    usleep(60);
    EXPECT(read(), 1);
    read(), read();
    EXPECT(read(), 1);  // half empty
    EXPECT(read(), 1);  // three are left
    // And of what is not, at intervals.
    uint32_t woken = 0;
    for (int i = 0; i < 400; ++i) {
        ring.header.head = ring.header.tail.load();
        woken += write(0);
    }
    EXPECT(woken < 200, true);
    ring.header.head = ring.header.tail.load();
    usleep(60);
    EXPECT(write(0), 1);
}

inline void ring_withdrawn() {
    Ring ring(4, 16, 3, 5);
    End in;
    in.attach(ring.words.data(), 0, nullptr);
    unsigned char room[4];
    Beat beat;
    beat.data = room;
    for (uint64_t k = 0; k < 10; ++k) put(ring, k);
    withdraw(ring, 5, 8);
    withdraw(ring, 9, 10);
    withdraw(ring, 12, 13);
    EXPECT(in.size(), 5);
    ring.header.sleepers = 1;
    EXPECT(in.empty(), false);
    EXPECT(ring.header.tail, 8);
    EXPECT(ring.rung(), 1);
    EXPECT(in.empty(), false);
    EXPECT(ring.rung(), 0);
    ring.header.sleepers = 0;
    for (const uint64_t k : {3, 5, 6, 8, 9}) {
        EXPECT(in.try_read(beat), true);
        expect_beat(beat, k, 4);
    }
    EXPECT(in.empty(), true);
    // All that is there is withdrawn: the reader's end says so, and leaves it behind.
    put(ring, 10), put(ring, 11);
    withdraw(ring, 15, 17);
    ring.slot(17)[offsetof(BeatSide, withdrawn)] = 1;  // left by a beat of the lap before
    EXPECT(in.size(), 0);
    ring.slot(17)[offsetof(BeatSide, withdrawn)] = 0;
    EXPECT(in.try_read(beat), false);
    EXPECT(ring.header.tail, 17);
    // A mark that a sender makes while the reader looks is found in the beat itself.
    put(ring, 12), put(ring, 13);
    RingReader clocked;
    clocked.attach(ring.words.data());
    EXPECT(clocked.available(), true);
    EXPECT(clocked.interrupted(), false);
    EXPECT(clocked.waiting_seen(), 2);
    withdraw(ring, 17, 18);
    EXPECT(clocked.interrupted(), true);
    EXPECT(clocked.interrupted(), false);
    EXPECT(clocked.waiting_seen(), 1);
    EXPECT(clocked.available(), true);
    EXPECT(clocked.front()[Ring::kSide], uint8_t(13 * 7));
    EXPECT(clocked.ends_a_packet(), false);
    withdraw(ring, 18, 19);
    EXPECT(clocked.ends_a_packet(), true);
    EXPECT(clocked.available(), false);
    EXPECT(clocked.interrupted(), true);
    clocked.flush();
    EXPECT(ring.header.tail, 19);
}

inline void ring_burst() {
    Ring ring(12, 256, 3, 40);
    Observer observer;
    BurstPort out, in, none;
    none.rewind(), none.withdraw(), none.wake(true), none.publish_read(), none.publish_written();
    EXPECT(none.attached(), false);
    out.attach(ring.words.data(), 3, &observer), in.attach(ring.words.data(), 6, &observer);
    EXPECT(out.attached(), true);
    EXPECT(out.data_bytes(), 12);
    auto write = [&](uint64_t k) { out.write(Numbered(k, 12).beat); };
    unsigned char room[12];
    Beat beat;
    beat.data = room;
    ring.header.ended = 1;
    for (uint64_t k = 0; k < 63; ++k) write(k);
    EXPECT(ring.header.head, 40);
    EXPECT(ring.header.ended, 0);
    EXPECT(ring.header.packets, 15);
    write(63);
    EXPECT(ring.header.head, 104);  // a burst
    write(64);
    EXPECT(ring.header.head, 104);
    out.publish_written();
    EXPECT(ring.header.head, 105);
    for (uint64_t k = 0; k < 65; ++k) expect_written(ring, 40 + k, k);
    for (uint64_t k = 65; k < 256; ++k) write(k);
    expect_text(waits(ring, observer, [&] { write(256); }), "w3!");
    EXPECT(ring.header.head, 40 + 256);
    auto read = [&](uint64_t k) { in.read(beat), expect_beat(beat, k, 12); };
    for (uint64_t k = 0; k < 63; ++k) read(k);
    EXPECT(ring.header.tail, 40);
    read(63);
    EXPECT(ring.header.tail, 104);
    read(64);
    ring.header.sleepers = 1, ring.rung();
    in.publish_read(), in.publish_read();
    EXPECT(ring.header.tail, 105);
    EXPECT(ring.rung(), 1);  // the sender may wait for room
    ring.header.sleepers = 0;
    for (uint64_t k = 256; k < 320; ++k) write(k);
    out.publish_written();
    EXPECT(ring.header.head, 40 + 320);
    for (uint64_t k = 65; k < 320; ++k) read(k);
    expect_text(waits(ring, observer, [&] { in.read(beat); }), "r6!");
    EXPECT(ring.header.tail, 40 + 320);  // before it waits it says what it has taken
    // A packet's end goes out with all before it.
    ring.header.sleepers = 1;
    ring.rung();
    write(320);
    EXPECT(ring.rung(), 0);
    out.write_last(Numbered(323, 12).beat);
    EXPECT(ring.header.head, 40 + 322);
    EXPECT(ring.header.ended, 0);
    EXPECT(ring.rung(), 2);
    expect_written(ring, 40 + 320, 320);
    expect_written(ring, 40 + 321, 323);
    ring.header.sleepers = 0;
    expect_text(waits(ring, observer, [&] { out.drain(); }), "");
    EXPECT(ring.header.ended, 1);
    out.write_last(Numbered(0, 12).beat), out.write_last(Numbered(0, 12).beat);
    EXPECT(ring.header.ended, 0);
    expect_text(waits(ring, observer, [&] { out.drain(); }), "w3!");
    out.wake(false);
    EXPECT(ring.rung(), 0);
    out.wake(true);
    EXPECT(ring.rung(), 1);
    // A reset takes back what the other side has not taken, but for what FIFOs hold.
    ring.header.fifo = 1;
    ring.header.ended = 0;
    out.withdraw();
    EXPECT(ring.header.ended, 1);
    EXPECT(ring.header.withdrawn, 40 + 324);
    for (uint64_t p = 360; p < 364; ++p) EXPECT(is_withdrawn(ring.slot(p)), p > 360);
    write(328), write(329), out.publish_written();
    out.withdraw();
    for (uint64_t p = 360; p < 366; ++p) EXPECT(is_withdrawn(ring.slot(p)), p > 360);
    write(330), out.publish_written();
    read(320), read(330);
    in.publish_read();
    EXPECT(ring.left(), 0);
    // A beat that comes while it waits is taken, and others then follow it as before.
    std::thread late([&] {
        while (ring.header.sleepers == 0) usleep(100);
        write(331), write(332), out.publish_written(), out.wake(true);
    });
    read(331);
    late.join();
    read(332);
    EXPECT(ring.header.tail, 40 + 328);
    ring.header.head = ring.header.tail = 0;
    out.rewind(), in.rewind();
    write(1), out.publish_written();
    EXPECT(ring.header.head, 1);
    read(1);
}

inline void ring_reader() {
    Ring ring(12, 256, 3, 1000);
    RingReader reader;
    put(ring, 0);
    reader.attach(ring.words.data());
    EXPECT(reader.data_bytes(), 12);
    EXPECT(reader.capacity(), 256);
    EXPECT(reader.depth(), 3);
    EXPECT(reader.ended(), false);
    ring.header.ended = 1;
    EXPECT(reader.ended(), true);
    for (uint64_t k = 1; k < 200; ++k) put(ring, k);
    EXPECT(reader.waiting_seen(), 1);
    EXPECT(reader.ends_a_packet(), false);
    EXPECT(reader.refresh(), 200);
    EXPECT(reader.ends_a_packet(), true);
    auto take = [&](uint64_t k) {
        EXPECT(reader.available(), true);
        EXPECT(std::memcmp(reader.front() + Ring::kSide, Numbered(k, 12).data.data(), 12), 0);
        EXPECT(reader.front() == ring.slot(1000 + k), true);
        reader.pop();
    };
    ring.header.sleepers = 1;
    ring.rung();
    for (uint64_t k = 0; k < 63; ++k) take(k);
    EXPECT(ring.header.tail, 1000);
    reader.flush(), reader.flush();
    EXPECT(ring.header.tail, 1063);
    EXPECT(ring.rung(), 1);
    for (uint64_t k = 63; k < 71; ++k) take(k);
    reader.flush();
    EXPECT(ring.rung(), 1);  // a sender that waits for room is woken whenever the clock pauses
    for (uint64_t k = 200; k < 270; ++k) put(ring, k);
    for (uint64_t k = 71; k < 135; ++k) take(k);
    EXPECT(ring.header.tail, 1135);
    EXPECT(ring.rung(), 0);  // more than half full: it waits for nothing yet
    reader.flush(), reader.flush();
    EXPECT(ring.rung(), 1);
    for (uint64_t k = 270; k < 327; ++k) put(ring, k);
    for (uint64_t k = 135; k < 199; ++k) take(k);
    EXPECT(ring.rung(), 1);  // 128 are left
    for (uint64_t k = 199; k < 327; ++k) take(k);
    EXPECT(ring.rung(), 2);
    EXPECT(reader.available(), false);
    // Those that were seen are taken before it looks for others.
    put(ring, 327);
    EXPECT(reader.waiting_seen(), 0);
    EXPECT(reader.available(), true);
    EXPECT(reader.waiting_seen(), 1);
    // Where the FIFO behind the sender holds more than half.
    Ring deep(12, 256, 200, 0);
    RingReader another;
    another.attach(deep.words.data());
    deep.header.sleepers = 1;
    for (uint64_t k = 0; k < 265; ++k) put(deep, k);
    for (int k = 0; k < 64; ++k) another.available(), another.pop();
    EXPECT(deep.rung(), 0);
    put(deep, 265), put(deep, 266);
    EXPECT(deep.rung(), 0);
    for (int k = 0; k < 64; ++k) another.available(), another.pop();
    EXPECT(deep.rung(), 1);
    for (uint64_t k = 267; k < 392; ++k) put(deep, k);
    for (int k = 0; k < 64; ++k) another.available(), another.pop();
    EXPECT(deep.rung(), 1);  // exactly 200 are left
}

inline void ring_writer() {
    Ring ring(12, 256, 3, 500);
    ring.header.tail = 498;
    RingWriter writer;
    writer.attach(ring.words.data());
    EXPECT(writer.occupancy(), 2);
    EXPECT(writer.taken(), 498);
    ring.header.tail = 500;
    EXPECT(writer.occupancy(), 2);
    EXPECT(writer.refresh(), 0);
    EXPECT(writer.taken(), 500);
    uint64_t position = 500;
    auto push = [&](bool last) {
        EXPECT(writer.back() == ring.slot(position), true);
        writer.push(last);
        ++position;
    };
    ring.header.sleepers = 1;
    for (int i = 0; i < 63; ++i) push(false);
    EXPECT(ring.header.head, 500);
    EXPECT(ring.header.packets, 0);
    writer.flush(), writer.flush();
    EXPECT(ring.header.head, 563);
    EXPECT(ring.rung(), 1);
    push(true);
    EXPECT(ring.header.head, 564);
    EXPECT(ring.header.packets, 1);
    EXPECT(ring.rung(), 1);
    EXPECT(writer.occupancy(), 64);
    ring.header.tail = 565;
    for (int i = 0; i < 64; ++i) push(false);
    EXPECT(ring.header.head, 628);
    EXPECT(ring.rung(), 0);  // less than a quarter full: nobody is woken yet
    writer.flush(), writer.flush();
    EXPECT(ring.rung(), 1);
    ring.header.tail = 628;
    for (int i = 0; i < 64; ++i) push(false);
    EXPECT(ring.rung(), 1);  // a quarter
    writer.flush();
    EXPECT(ring.rung(), 0);
    // Nobody sleeps: nobody is woken.
    ring.header.sleepers = 0;
    push(true);
    EXPECT(ring.rung(), 0);
}

// Whether a process that sleeps on the ring hears of what a side does.
inline bool heard(Ring& ring, const std::function<void()>& call) {
    long slept = 0;
    std::thread sleeper([&] {
        const struct timespec limit{1, 0};
        slept = syscall(SYS_futex, &ring.header.signal, FUTEX_WAIT, ring.header.signal.load(),
                        &limit, nullptr, 0);
    });
    usleep(20'000);
    ring.header.sleepers = 1;
    call();
    ring.header.sleepers = 0;
    sleeper.join();
    return slept == 0;
}
inline void ring_sleepers() {
    Ring ring(4, 16, 3);
    End out;
    out.attach(ring.words.data(), 0, nullptr);
    EXPECT(heard(ring, [&] { out.try_write(Numbered(3, 4).beat); }), true);
    BurstPort burst;
    burst.attach(ring.words.data(), 0, nullptr);
    EXPECT(heard(ring, [&] { burst.wake(false); }), true);
    RingReader reader;
    reader.attach(ring.words.data());
    EXPECT(heard(ring, [&] { reader.available(), reader.pop(), reader.flush(); }), true);
    RingWriter writer;
    writer.attach(ring.words.data());
    EXPECT(heard(ring, [&] { writer.push(true); }), true);
    EXPECT(ring.rung(), 4);
}

inline const std::map<std::string, void (*)()>& ring_cases() {
    static const std::map<std::string, void (*)()> cases = {
        {"port", ring_port},       {"waits", ring_waits},   {"withdrawn", ring_withdrawn},
        {"burst", ring_burst},     {"reader", ring_reader}, {"writer", ring_writer},
        {"repeats", ring_repeats}, {"grants", ring_grants}, {"pins", ring_pins},
        {"sleepers", ring_sleepers},
    };
    return cases;
}

}  // namespace bench
