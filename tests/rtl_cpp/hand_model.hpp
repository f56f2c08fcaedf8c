// A model of a kernel that a case drives: AXI4-Lite registers that answer, everything else by hand.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "fake_model.hpp"

namespace bench {

// What the next model is to have, and the model that was made last.
struct HandSetup {
    uint32_t version = kModelVersion;
    bool seen = true, chain = false, memory = true;
};
inline HandSetup hand_setup;

struct Hand {
    FakeModel model;
    std::map<uint64_t, uint32_t> registers;
    std::vector<uint8_t> state = std::vector<uint8_t>(8);
    std::function<void()> edge;  // besides the registers
    std::string fails;           // what stops the model, if anything
    uint32_t seed, fill;
    uint64_t last = 0, edges = 0;

    Hand(uint32_t with_seed, uint32_t with_fill) : seed(with_seed), fill(with_fill) {
        for (const char* name : {"ap_clk", "aux_clk", "ap_rst_n", "ap_rst", "s_AWVALID", "s_WVALID",
                                 "s_BREADY", "s_ARVALID", "s_RREADY", "in_TVALID", "out_TREADY"})
            model.add(name, 1, kInput);
        for (const char* name : {"interrupt", "s_AWREADY", "s_WREADY", "s_BVALID", "s_ARREADY",
                                 "s_RVALID", "in_TREADY", "out_TVALID", "out_TLAST"})
            model.add(name, 1, kOutput);
        for (const char* name : {"s_AWADDR", "s_ARADDR"}) model.add(name, 12, kInput);
        model.add("s_WDATA", 32, kInput), model.add("s_RDATA", 32, kOutput);
        model.add("s_RRESP", 2, kOutput), model.add("in_TLAST", 1, kInput);
        model.add("in_TDATA", 64, kInput), model.add("out_TDATA", 64, kOutput);
        if (hand_setup.seen)
            for (const char* name : {".ap_start", ".ap_done", ".ap_idle", ".ap_ready"})
                model.add(name, 1, kNet);
        if (hand_setup.chain) model.add(".ap_continue", 1, kNet);
        model.add(".perf_load", 1, kNet), model.add(".perf_wide", 2, kNet);
        model.add("perf_port", 1, kOutput), model.add(".perf_store", 1, kNet);
        set("s_AWREADY", 1), set("s_WREADY", 1), set("s_ARREADY", 1);
    }
    Pin pin(const std::string& name) { return model.pins().need(name); }
    void set(const std::string& name, uint64_t value) { pin(name).set(value); }
    uint64_t get(const std::string& name) { return pin(name).get(); }

    int eval() {
        const uint64_t clk = get("ap_clk");
        if (clk && !last) ++edges, serve();
        if (clk && !last && edge) edge();
        last = clk;
        return !fails.empty();
    }

  private:
    void serve() {
        if (get("s_BVALID") && get("s_BREADY")) set("s_BVALID", 0);
        if (get("s_RVALID") && get("s_RREADY")) set("s_RVALID", 0);
        if (get("s_AWVALID") && get("s_WVALID"))
            registers[get("s_AWADDR")] = uint32_t(get("s_WDATA")), set("s_BVALID", 1);
        if (get("s_ARVALID")) {
            set("s_RDATA", registers[get("s_ARADDR")]), set("s_RVALID", 1);
            set("s_RRESP", get("s_ARADDR") == 0x40 ? 2 : 0);
        }
    }
};
inline Hand* hand = nullptr;

inline const ModelApi& hand_api() {
    static ModelApi api{};
    api.version = hand_setup.version;
    api.create = [](uint32_t seed, uint32_t fill) {
        hand = hand_setup.memory ? new Hand(seed, fill) : nullptr;
        return reinterpret_cast<Model*>(hand);
    };
    api.destroy = [](Model*) {};
    api.eval = [](Model* m) { return reinterpret_cast<Hand*>(m)->eval(); };
    api.error = [](Model* m) { return reinterpret_cast<Hand*>(m)->fails.c_str(); };
    api.signals = [](Model* m, const Signal** out) {
        const auto& list = reinterpret_cast<Hand*>(m)->model.signals();
        *out = list.data();
        return list.size();
    };
    api.state = [](Model* m, size_t* nbytes) -> const void* {
        const auto& state = reinterpret_cast<Hand*>(m)->state;
        *nbytes = state.size();
        return state.data();
    };
    return api;
}

}  // namespace bench
