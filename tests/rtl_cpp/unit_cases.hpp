// What drives a unit's registers, with the unit's own signals set by hand.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "axi_lite.hpp"
#include "checker_cases.hpp"
#include "stream_cases.hpp"

namespace bench {

inline void unit_lite(uint32_t width, bool optional) {
    Unit u;
    u.prefix = "s";
    u.cycle = 7;
    u.add("AWVALID AWREADY WVALID WREADY BVALID BREADY ARVALID ARREADY RVALID RREADY", 1);
    u.add("AWADDR ARADDR", 12), u.add("WDATA RDATA", width);
    if (optional) u.add("BRESP RRESP", 2), u.add("WSTRB", width / 8);
    LiteManager lite(u.model.pins(), "s", "unit_0.s", 3, u.board.trace);
    EXPECT(lite.name() == "unit_0.s", true);
    auto asks = [&](const char* want) {  // the VALIDs and READYs that the board drives
        std::string got;
        for (const char* name : {"AWVALID", "WVALID", "BREADY", "ARVALID", "RREADY"})
            got += u.get(name) ? '1' : '0';
        expect_text(got, want);
    };
    auto access = [&](bool write, uint32_t address, uint32_t value, uint32_t resp, bool traced) {
        const uint32_t lane = width == 64 && address & 4 ? 32 : 0;
        const uint64_t begin = u.cycle, records = u.board.trace->written();
        EXPECT(lite.idle(), true);
        EXPECT(lite.pending(), false);
        if (write) lite.write(address, value, u.cycle, traced);
        else lite.read(address, u.cycle);
        EXPECT(lite.idle(), false);
        EXPECT(lite.pending(), true);
        EXPECT(lite.address(), address);
        u.step(lite);
        asks(write ? "11100" : "00010");
        EXPECT(u.get(write ? "AWADDR" : "ARADDR"), address);
        if (write) {
            EXPECT(u.get("WDATA"), uint64_t(value) << lane);
            if (optional) EXPECT(u.get("WSTRB"), uint64_t(0xf) << lane / 8);
            const bool data_first = value & 1;
            u.set(data_first ? "WREADY" : "AWREADY", 1), u.step(lite);
            EXPECT(lite.accepted_write(), false);
            EXPECT(lite.last_handshake, u.cycle - 1);
            u.set("WREADY", 0), u.set("AWREADY", 0), u.step(lite);
            asks(data_first ? "10100" : "01100");
            EXPECT(lite.last_handshake, u.cycle - 2);
            u.set("WREADY", 1), u.set("AWREADY", 1), u.step(lite);
            EXPECT(lite.accepted_write(), true);
            EXPECT(lite.word(), value);
            EXPECT(lite.last_handshake, u.cycle - 1);
            u.step(lite);
            asks("00100");
            EXPECT(lite.accepted_write(), false);
            EXPECT(lite.last_handshake, u.cycle - 2);
            u.set("WREADY", 0), u.set("AWREADY", 0), u.set("BVALID", 1);
        } else {
            u.set("ARREADY", 1), u.step(lite), u.set("ARREADY", 0);
            EXPECT(lite.last_handshake, u.cycle - 1);
            u.step(lite);
            asks("00001");
            EXPECT(lite.last_handshake, u.cycle - 2);
            u.set("RVALID", 1), u.set("RDATA", (width == 64 ? 0x55555555aaaaaaaa : 0));
            u.set("RDATA", (u.get("RDATA") & ~(uint64_t(~0u) << lane)) | uint64_t(value) << lane);
        }
        if (optional) u.set(write ? "BRESP" : "RRESP", resp);
        const uint64_t end = u.cycle;
        u.step(lite);
        u.set("BVALID", 0), u.set("RVALID", 0);
        EXPECT(lite.last_handshake, end);
        EXPECT(lite.value(), value);
        // It is an answer when what the access changed has settled.
        EXPECT(lite.answered(), false);
        u.step(lite);
        asks("00000");
        EXPECT(lite.answered(), false);
        u.step(lite);
        EXPECT(lite.answered(), true);
        u.step(lite);
        EXPECT(lite.answered(), true);
        EXPECT(lite.result(), optional && resp >= 2 ? resp : uint32_t(kAnswered));
        lite.take();
        u.step(lite);
        EXPECT(lite.answered(), false);
        EXPECT(u.board.trace->written() - records, !write || traced);
        if (write && !traced) return;
        const TransactionRecord& r = u.board.trace->at(records);
        EXPECT(r.begin, begin);
        EXPECT(r.first, end);
        EXPECT(r.end, end);
        EXPECT(r.address, address);
        EXPECT(r.value, value);
        EXPECT(r.bytes + 100 * r.beats + 1000 * r.port + 10000 * r.size + 100000 * r.burst, 123104);
        EXPECT(r.kind, uint8_t(write ? Transfer::register_write : Transfer::register_read));
        EXPECT(r.resp, optional ? resp : 0);
        EXPECT(r.flags + r.stalls + r.id, 0);
    };
    u.step(lite);
    asks("00000");
    access(true, 0x14, 0xcafe1234, 0, true);
    access(false, 0x14, 0x89abcdef, 0, true);
    access(true, 0x18, 0x00000081, 2, false);
    access(true, 0x1c, 0x00000081, 0, true);
    access(false, 0x20, 0x00000001, 3, true);
    access(false, 0xffc, 0xffffffff, 0, true);
    // Address and data may be taken at once.
    lite.write(0x10, 5, u.cycle);
    u.set("AWREADY", 1), u.set("WREADY", 1), u.step(lite);
    EXPECT(lite.accepted_write(), true);
    u.set("AWREADY", 0), u.set("WREADY", 0);
    // A reset ends it; what was asked is asked no more.
    lite.reset();
    EXPECT(lite.idle(), true);
    EXPECT(lite.accepted_write(), false);
    u.step(lite);
    asks("00000");
    for (const bool write : {true, false}) {
        const uint64_t begin = u.cycle;
        if (write) lite.write(4, 5, begin);
        else lite.read(4, begin);
        while (!lite.answered() && u.cycle < begin + 200'000) u.step(lite);
        EXPECT(u.cycle - begin, 100'002);  // the first cycle beyond the 100,000 of patience
        EXPECT(lite.result(), kNoAnswer);
        lite.take();
        u.step(lite), u.step(lite);
        asks("00000");
    }
}

// Sixteen beats of data may come before the address of their burst, and wait for it.
inline void unit_early() {
    ByHand h;
    uint64_t taken = 0;
    auto step = [&] {
        h.step();
        if (!h.get("WVALID") || !h.get("WREADY")) return;
        h.set("WDATA", ++taken), h.set("WLAST", taken == 19);
    };
    h.set("WVALID", 1), h.set("BREADY", 1), h.set("WDATA", 0), h.set("AWLEN", 19);
    for (int i = 0; i < 100; ++i) step();
    EXPECT(taken, 16);
    EXPECT(h.port.pending(), true);
    EXPECT(h.board.counters->port(0)->write.beats, 0);
    h.set("AWVALID", 1), step(), h.set("AWVALID", 0);
    EXPECT(h.board.counters->port(0)->write.beats, 16);
    for (int i = 0; i < 100 && taken < 20; ++i) step();
    h.set("WVALID", 0);
    for (int i = 0; i < 100; ++i) h.step();
    EXPECT(h.board.counters->port(0)->write.transactions, 1);
    EXPECT(h.port.pending(), false);
    for (uint64_t k = 0; k < 20; ++k) EXPECT(h.memory.map().at(Board::kBegin + 8 * k)[0], k);
}

// What a stream does not have is not checked; without TKEEP and TSTRB all bytes are data.
inline void unit_few_pins() {
    Unit plain;
    plain.prefix = "t";
    plain.add("TVALID TREADY", 1), plain.add("TDATA", 1024);
    Ring ring(128, 4, 3);
    StreamSink sink(plain.model.pins(), "t", "unit_0.t", 0, true, ring.words.data(), Chance(1, 0),
                    nullptr, StreamMeter(plain.board.counters, plain.board.trace, 0, false));
    plain.set("TVALID", 1);
    for (int i = 0; i < 2; ++i) plain.step(sink);
    const auto* keep = reinterpret_cast<const uint64_t*>(ring.slot(0));
    EXPECT(keep[0] & keep[1], ~0ull);
    for (const char* only : {"TSTRB", "TKEEP"}) {
        Unit u;
        u.prefix = "t";
        u.add("TVALID TREADY", 1), u.add(only, 4);
        StreamChecker checker(u.model.pins(), "t", "unit_0.t");
        u.set("TVALID", 1), u.set(only, 9), u.set("TREADY", 1);
        EXPECT(checker.sample(0), true);
        checker.sample_reset(1, 0), checker.reset();
    }
}

inline const std::map<std::string, void (*)()>& unit_cases() {
    static const std::map<std::string, void (*)()> cases = {
        {"lite", [] { for (uint32_t w : {32, 64}) unit_lite(w, true), unit_lite(w, false); }},
        {"source", [] {
             for (const bool local : {false, true})
                 for (const auto& [w, n] : {std::pair{32u, 4u}, {8u, 4u}, {96u, 12u}, {128u, 8u}, {512u, 64u}, {1024u, 128u}})
                     unit_source(w, n, local);
         }},
        {"sink", [] {
             for (const bool local : {false, true})
                 for (const auto& [w, n] : {std::pair{32u, 4u}, {8u, 4u}, {96u, 12u}, {512u, 64u}, {1024u, 128u}})
                     unit_sink(w, n, local);
         }},
        {"early data", unit_early},
        {"few pins", unit_few_pins},
        {"flow of a DMA", unit_flow},
        {"meter", [] { unit_meter(true), unit_meter(false); }},
        {"source of a DMA", unit_source_of_a_dma},
        {"sink to a DMA", unit_sink_to_a_dma},
    };
    return cases;
}

}  // namespace bench
