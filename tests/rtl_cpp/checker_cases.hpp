// Managers and units that break one rule each.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "fake_model.hpp"

namespace bench {

// A port on which each cycle's signals are set by hand.
struct ByHand {
    Board board;
    FakeModel model;
    Memory memory;
    AxiPort port;
    uint64_t cycle = 0;

    explicit ByHand(double stalls = 0)
        : memory(board.map, *preset("pynq-z2"), 100e6, stalls, 1),
          port(with_signals(), "m", memory, 0, 0, "unit_0.m", board.counters, board.trace) {
        set("ARSIZE", 3), set("AWSIZE", 3), set("ARBURST", kIncr), set("AWBURST", kIncr);
        set("ARADDR", Board::kBegin), set("AWADDR", Board::kBegin), set("WSTRB", 0xff);
    }
    Pins with_signals() {
        model.add_axi("m", 64);
        return model.pins();
    }
    Pin pin(const std::string& name) { return model.pins().need("m_" + name); }
    void set(const std::string& name, uint64_t value) { pin(name).set(value); }
    uint64_t get(const std::string& name) { return pin(name).get(); }
    void step() {
        memory.tick(cycle);
        port.drive(cycle);
        port.sample(cycle);
        ++cycle;
    }
    // Holds VALID of a channel until a cycle ends in which READY was low.
    void until_waiting(const std::string& channel) {
        set(channel + "VALID", 1);
        for (int i = 0; i < 1000; ++i) {
            step();
            if (!get(channel + "READY")) return;
        }
    }
    void until_taken(const std::string& channel) {
        set(channel + "VALID", 1);
        do step();
        while (!get(channel + "READY"));
        set(channel + "VALID", 0);
    }
};

inline void broken_port(const std::string& rule) {
    const bool waits = rule.find("waiting") != std::string::npos;
    ByHand h(waits ? 0.9 : 0);
    auto read = [&](uint64_t address, uint32_t beats, uint32_t size, uint32_t burst) {
        h.set("ARADDR", address), h.set("ARLEN", beats - 1), h.set("ARSIZE", size),
            h.set("ARBURST", burst);
        h.until_taken("AR");
    };
    auto changes = [&](const std::string& channel, const std::string& what, uint64_t to) {
        if (channel == "W") h.set("AWLEN", 15), h.until_taken("AW");
        h.until_waiting(channel);
        h.set(what, to);
        h.step();
    };
    const uint64_t at = Board::kBegin;
    if (rule == "4 KB") read(at + 4096 - 64, 9, 3, kIncr);
    if (rule == "4 KB unaligned") read(at + 4096 - 61, 9, 3, kIncr);
    if (rule == "size") read(at, 1, 4, kIncr);
    if (rule == "reserved burst") read(at, 1, 3, 3);
    if (rule == "WRAP of 3") read(at, 3, 3, kWrap);
    if (rule == "WRAP unaligned") read(at + 4, 4, 3, kWrap);
    if (rule == "FIXED of 17") read(at, 17, 3, kFixed);
    if (rule == "exclusive") h.set("ARLOCK", 1), read(at, 1, 3, kIncr);
    if (rule == "write crosses 4 KB")
        h.set("AWADDR", at + 4088), h.set("AWLEN", 1), h.until_taken("AW");
    if (rule == "WLAST early")
        h.set("AWLEN", 3), h.until_taken("AW"), h.set("WLAST", 1), h.until_taken("W");
    if (rule == "WLAST late")
        h.set("AWLEN", 0), h.until_taken("AW"), h.set("WLAST", 0), h.until_taken("W");
    if (rule == "WLAST early, before the address")
        h.set("WLAST", 1), h.until_taken("W"), h.set("AWLEN", 3), h.until_taken("AW");
    if (rule == "strobe")
        h.set("AWADDR", at + 4), h.set("AWSIZE", 2), h.until_taken("AW"), h.set("WLAST", 1),
            h.until_taken("W");
    if (rule == "ARVALID falls while waiting") changes("AR", "ARVALID", 0);
    if (rule == "AWVALID falls while waiting") changes("AW", "AWVALID", 0);
    if (rule == "WVALID falls while waiting") changes("W", "WVALID", 0);
    if (rule == "ARADDR changes while waiting") changes("AR", "ARADDR", at + 8);
    if (rule == "ARLEN changes while waiting") changes("AR", "ARLEN", 7);
    if (rule == "AWID changes while waiting") changes("AW", "AWID", 7);
    if (rule == "WDATA changes while waiting") changes("W", "WDATA", 7);
    if (rule == "WLAST changes while waiting") changes("W", "WLAST", 1);
    if (rule == "ARVALID in reset" || rule == "AWVALID in reset" || rule == "WVALID in reset") {
        h.set(rule.substr(0, rule.find(' ')), 1);
        for (uint64_t n = 0; n < 16; ++n) h.port.sample_reset(h.cycle++, n);
    }
}

inline void broken_lite(const std::string& rule) {
    FakeModel model;
    for (const char* name : {"AWVALID", "WVALID", "BREADY", "ARVALID", "RREADY"})
        model.add(std::string("s_") + name, 1, kInput);
    for (const char* name : {"AWREADY", "WREADY", "BVALID", "ARREADY", "RVALID"})
        model.add(std::string("s_") + name, 1, kOutput);
    model.add("s_BRESP", 2, kOutput), model.add("s_RRESP", 2, kOutput),
        model.add("s_RDATA", 32, kOutput);
    LiteChecker checker(model.pins(), "s", "unit_0.s");
    uint64_t cycle = 0;
    auto set = [&](const std::string& name, uint64_t value) {
        model.pins().need("s_" + name).set(value);
    };
    auto step = [&] { checker.sample(cycle++); };
    auto write = [&] {
        set("AWVALID", 1), set("AWREADY", 1), step(), set("AWVALID", 0);
        set("WVALID", 1), set("WREADY", 1), step(), set("WVALID", 0);
    };
    auto read = [&] { set("ARVALID", 1), set("ARREADY", 1), step(), set("ARVALID", 0); };
    // What is allowed comes first, so that it is known not to be refused.
    write(), set("BVALID", 1), step(), step(), set("BREADY", 1), step(), set("BVALID", 0),
        set("BREADY", 0), step();
    read(), set("RVALID", 1), set("RDATA", 5), step(), set("RREADY", 1), step(), set("RVALID", 0),
        set("RREADY", 0), step();
    if (rule == "B without a write") set("BVALID", 1), step();
    if (rule == "B before the data")
        set("AWVALID", 1), step(), set("AWVALID", 0), set("BVALID", 1), step();
    if (rule == "two B for one write") write(), set("BVALID", 1), set("BREADY", 1), step(), step();
    if (rule == "BVALID falls") write(), set("BVALID", 1), step(), set("BVALID", 0), step();
    if (rule == "BRESP changes") write(), set("BVALID", 1), step(), set("BRESP", 2), step();
    if (rule == "EXOKAY") read(), set("RVALID", 1), set("RRESP", 1), step();
    if (rule == "R without a read") set("RVALID", 1), step();
    if (rule == "RDATA changes") read(), set("RVALID", 1), step(), set("RDATA", 6), step();
    if (rule == "RVALID in reset") {
        set("RVALID", 1);
        for (uint64_t n = 0; n < 16; ++n) checker.sample_reset(cycle++, n);
    }
}

inline void broken_stream(const std::string& rule) {
    FakeModel model;
    for (const char* name : {"TVALID", "TLAST"}) model.add(std::string("out_") + name, 1, kOutput);
    model.add("out_TREADY", 1, kInput), model.add("out_TDATA", 256, kOutput);
    model.add("out_TKEEP", 32, kOutput), model.add("out_TSTRB", 32, kOutput),
        model.add("out_TDEST", 4, kOutput);
    StreamChecker checker(model.pins(), "out", "unit_0.out");
    uint64_t cycle = 0, moved = 0;
    auto set = [&](const std::string& name, uint64_t value) {
        model.pins().need("out_" + name).set(value);
    };
    auto step = [&] { moved += checker.sample(cycle++); };
    set("TKEEP", 0xffffffff), set("TSTRB", 0xffffffff), set("TVALID", 1), step(), set("TREADY", 1),
        step();
    set("TDATA", 3), step(), set("TREADY", 0), set("TDATA", 4), step();
    if (moved != 2)
        throw std::runtime_error("two beats moved, and " + std::to_string(moved) + " were seen");
    if (rule == "TVALID falls") set("TVALID", 0), step();
    if (rule == "TDATA changes") model.pins().need("out_TDATA").bytes()[31] = 1, step();
    if (rule == "TLAST changes") set("TLAST", 1), step();
    if (rule == "TDEST changes") set("TDEST", 1), step();
    if (rule == "TSTRB without TKEEP") set("TREADY", 1), step(), set("TKEEP", 0xff), step();
    if (rule == "TVALID in reset")
        for (uint64_t n = 0; n < 16; ++n) checker.sample_reset(cycle++, n);
}

// A design of one register that is, or is not, set by its reset; an assertion of it may fail.
struct TinyModel {
    FakeModel model;
    Pin clk, rst, out, data;
    uint64_t state = 0, last = 0, edges = 0, woke_with = 0;
};
inline bool tiny_resets = true;
// Which models fail, those that woke with ones or with zeros, and after how many edges.
inline uint64_t tiny_fails_with = ~0ull, tiny_fails_after = 0;

inline ModelApi tiny_api() {
    ModelApi api{};
    api.version = kModelVersion;
    api.create = [](uint32_t seed, uint32_t fill) {
        auto* t = new TinyModel;
        t->clk = t->model.add("ap_clk", 1, kInput), t->rst = t->model.add("ap_rst_n", 1, kInput);
        t->data = t->model.add("m_axi_gmem_ARADDR", 8, kOutput);
        t->out = t->model.add("m_axi_gmem_ARVALID", 1, kOutput);
        t->state = fill == kZeros ? 0 : fill == kOnes ? 1 : seed & 1;
        t->woke_with = t->state, t->data.set(seed);  // what is no control output may be anything
        return reinterpret_cast<Model*>(t);
    };
    api.destroy = [](Model* m) { delete reinterpret_cast<TinyModel*>(m); };
    api.eval = [](Model* m) {
        auto* t = reinterpret_cast<TinyModel*>(m);
        if (t->edges++ == tiny_fails_after && t->woke_with == tiny_fails_with) {
            tiny_resets = false;  // what it does from here on means nothing
            return 1;
        }
        if (t->clk.get() && !t->last && !t->rst.get() && tiny_resets) t->state = 0;
        t->last = t->clk.get();
        t->out.set(t->state);
        return 0;
    };
    api.error = [](Model*) { return "an assertion"; };
    api.signals = [](Model* m, const Signal** out) {
        auto* t = reinterpret_cast<TinyModel*>(m);
        *out = t->model.signals().data();
        return t->model.signals().size();
    };
    return api;
}

}  // namespace bench
