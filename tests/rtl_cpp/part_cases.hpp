// Parts of the board by themselves: states that repeat, pins, which pages a unit may use.
#pragma once

#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "fake_model.hpp"
#include "repeats.hpp"

namespace bench {

// The first cycle after which states are found to repeat themselves; 0: not in 2000 cycles.
inline uint64_t found_after(size_t nbytes, const std::function<void(uint64_t, uint8_t*)>& state) {
    Repeats repeats;
    std::vector<uint8_t> bytes(nbytes);
    for (uint64_t cycle = 0; cycle < 2000; ++cycle) {
        std::fill(bytes.begin(), bytes.end(), uint8_t(0));
        state(cycle, bytes.data());
        repeats.look(bytes.data(), nbytes);
        if (repeats.found()) {
            repeats.forget();
            EXPECT(repeats.found(), false);
            repeats.look(bytes.data(), nbytes);
            EXPECT(repeats.found(), false);  // compared with nothing that was before
            return cycle;
        }
    }
    return 0;
}
inline void ring_repeats() {
    for (const size_t nbytes : {1, 255, 256, 257, 1000}) {
        auto round = [&](uint64_t period, uint64_t settled) {
            return found_after(nbytes, [&](uint64_t cycle, uint8_t* at) {
                at[nbytes - 1] = uint8_t(cycle < settled ? 200 + cycle % 50 : cycle % period);
            });
        };
        EXPECT(round(1, 0), 1);
        EXPECT(round(2, 0), 2);
        EXPECT(round(32, 0), 32);
        EXPECT(round(33, 0), 65);   // with the second copy, which lasts 64 cycles
        EXPECT(round(64, 0), 96);
        EXPECT(round(65, 0), 161);
        EXPECT(round(128, 0), 224);
        EXPECT(round(1, 45), 65);
        EXPECT(round(5, 45), 69);
    }
    EXPECT(found_after(0, [](uint64_t, uint8_t*) {}), 1);  // no state, nothing that differs
    // States that differ in one place, then in another.
    EXPECT(found_after(1000, [](uint64_t c, uint8_t* at) {
               if (c < 40) at[c % 3 * 400] = uint8_t(c + 1);
           }), 65);
    EXPECT(found_after(1000, [](uint64_t c, uint8_t* at) {
               std::memcpy(at + 100 * (c % 8), &c, 8);
           }), 0);
}

// Verilator's storage: the smallest of four integers, or words; nothing behind it is touched.
inline void ring_pins() {
    for (const uint32_t width : {1, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 95, 96, 97, 128}) {
        const size_t stored = width <= 8 ? 1 : width <= 16 ? 2 : width <= 32 ? 4 : width <= 64 ? 8
                              : width <= 96 ? 12 : 16;
        alignas(8) uint8_t bytes[24];
        for (size_t i = 0; i < sizeof bytes; ++i) bytes[i] = uint8_t(0xe0 + i);
        const Pin pin(bytes, width);
        auto untouched = [&](size_t from) {
            for (; from < sizeof bytes; ++from) EXPECT(bytes[from], 0xe0 + from);
        };
        uint64_t want = 0;
        std::memcpy(&want, bytes, std::min<size_t>(8, stored));
        EXPECT(pin.get(), want);
        EXPECT(pin.nbytes(), width == 1 ? 1 : (width + 7) / 8);
        EXPECT(pin.high(), false);
        pin.set(0x8877665544332211);
        want = width < 64 ? 0x8877665544332211 & ((uint64_t(1) << width) - 1) : 0x8877665544332211;
        EXPECT(pin.get(), want);
        EXPECT(pin.high(), true);
        untouched(std::min<size_t>(8, stored));
        pin.clear();
        EXPECT(pin.get(), 0);
        for (size_t i = 0; i < stored; ++i) EXPECT(bytes[i], 0);
        untouched(stored);
        pin.set_bit(true);
        EXPECT(bytes[0], 1);
        EXPECT(pin.exists(), true);
    }
    const Pin none;
    none.set(1), none.set_bit(true), none.clear();
    EXPECT(none.exists() || none.get() || none.high(), false);
}

inline void ring_grants() {
    const int fd = memfd_create("ddr", 0);
    if (fd < 0 || ftruncate(fd, 1 << 20) != 0) throw std::runtime_error("no memory");
    auto refused = [&](uint64_t base, uint64_t size) {
        try {
            MemoryMap(true).add_window(base, size, fd, 0);
        } catch (const std::runtime_error&) { return true; }
        return false;
    };
    EXPECT(refused(0x1000, 0x1000), false);
    EXPECT(refused(0xfffff000, 0x1000), false);
    EXPECT(refused(0xfffff000, 0x2000), true);
    EXPECT(refused(0x1800, 0x1000), true);
    EXPECT(refused(0x1000, 0x1800), true);
    for (const bool guard : {true, false}) {
        MemoryMap map(guard);
        map.add_window(0, 0x40000, fd, 0x1000);
        map.add_window(0x40000000, 0x2000, fd, 0x80000);
        map.add_window(0x40002000, 0x1000, fd, 0x90000);
        *map.at(0x40000001) = 7;
        *map.at(2) = 9;
        uint8_t byte[2];
        EXPECT(pread(fd, byte, 1, 0x80001) + pread(fd, byte + 1, 1, 0x1002), 2);
        EXPECT(byte[0] * 256 + byte[1], 7 * 256 + 9);
        // generation, count, slots
        uint64_t grants[8] = {1, 2, 0x2000, 0x4001, 0x8000, 0x8010, 0, 0};
        map.refresh_grants();
        // One letter a page from 0 on: o open, g guarded, - nothing.
        auto pages = [&](uint64_t from, int n) {
            std::string text;
            for (uint64_t first; n-- > 0; from += 0x1000)
                text += "o-g"[map.check(from, 0x1000, first)];
            return text;
        };
        auto expect_pages = [&](const char* with_guard) {
            map.refresh_grants();
            expect_text(pages(0, 10), guard ? with_guard : "oooooooooo");
        };
        expect_pages("gggggggggg");
        map.use_grants(grants);
        expect_pages("ggooogggog");
        grants[4] = 0x6000;
        expect_pages("ggooogggog");  // not before the generation says so
        grants[0] = 2;
        expect_pages("ggooogooog");
        grants[0] = 3, grants[2] = 0x7000, grants[3] = 0x9000, grants[4] = grants[5] = 0;
        expect_pages("gggggggoog");
        grants[0] = 4, grants[1] = 3, grants[6] = 0, grants[7] = 0x1000;
        expect_pages("oggggggoog");
        grants[0] = 5, grants[7] = uint64_t(1) << 33;  // nonsense is no grant
        expect_pages("gggggggoog");
        grants[0] = 6, grants[6] = 0x3f000, grants[7] = 0x41000;
        map.refresh_grants();
        expect_text(pages(0x3e000, 4), guard ? "go--" : "oo--");
        expect_text(pages(0x3ffff000, 5), "-ooo-");
        uint64_t first = 0;
        EXPECT(map.check(0x3ffff, 1, first), AccessFault::none);
        EXPECT(map.check(0x3ffff, 2, first), AccessFault::outside);
        EXPECT(first, 0x40000);
        EXPECT(map.check(0xffffffff, 2, first), AccessFault::outside);
        EXPECT(map.check(uint64_t(1) << 32, 1, first), AccessFault::outside);
        EXPECT(map.check(0x6800, 0x900, first), guard ? AccessFault::guard : AccessFault::none);
        EXPECT(map.check(0x8800, 0x900, first), guard ? AccessFault::guard : AccessFault::none);
        if (guard) EXPECT(first, 0x9000);
        // 64 bytes around a buffer can be read, but not in a page that another one had.
        auto expect_near = [&](uint64_t address, uint64_t nbytes, bool passes) {
            EXPECT(map.just_outside(address, nbytes), passes || !guard);
        };
        grants[0] = 7, grants[2] = 0x12000, grants[3] = 0x13001, grants[6] = grants[7] = 0;
        map.refresh_grants();
        expect_near(0x14000, 64, true), expect_near(0x1403f, 1, true), expect_near(0x13ff0, 0x50, true);
        expect_near(0x14000, 65, false), expect_near(0x14040, 1, false);
        expect_near(0x11fc0, 64, true), expect_near(0x11fbf, 1, false), expect_near(0x11fc0, 0x2000, true);
        grants[0] = 8, grants[2] = 0x13000, grants[3] = 0x13800;
        map.refresh_grants();
        expect_near(0x12fff, 1, false);  // freed
        grants[0] = 9, grants[2] = 0x11000, grants[3] = 0x12000;
        map.refresh_grants();
        expect_near(0x12000, 1, true);  // the page behind it is its own
        expect_near(0x10fff, 1, true);
        EXPECT(map.just_outside(0x40000, 1) || map.just_outside(uint64_t(1) << 32, 1), false);
    }
    close(fd);
}

}  // namespace bench
