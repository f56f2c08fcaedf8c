// An AXI4-Lite manager for benches: one access at a time, each with a bound on its cycles.
#pragma once

#include <functional>

#include "bench.hpp"

struct LiteSignals {
    CData &awvalid, &awready, &awaddr, &wvalid, &wready;
    IData& wdata;
    CData &wstrb, &bvalid, &bready, &arvalid, &arready, &araddr, &rvalid, &rready;
    IData& rdata;
};

class Lite {
  public:
    // cycle() runs one whole cycle; settled() is called by it with the outputs settled.
    Lite(LiteSignals signals, Random& random, std::function<void()> cycle)
        : pin(signals), random_(random), cycle_(std::move(cycle)) {
        pin.awvalid = pin.wvalid = pin.bready = pin.arvalid = pin.rready = 0;
    }

    void settled() {
        aw_ = pin.awvalid && pin.awready;
        w_ = pin.wvalid && pin.wready;
        b_ = pin.bvalid && pin.bready;
        ar_ = pin.arvalid && pin.arready;
        r_ = pin.rvalid && pin.rready;
        data_ = pin.rdata;
    }
    void write(unsigned offset, uint32_t value, unsigned strobes = 15) {
        bool aw = false, w = false;
        pin.awaddr = offset;
        pin.wdata = value;
        pin.wstrb = strobes;
        for (int i = 0;; ++i) {
            CHECK(i < 200, "a register write without an answer, offset 0x%x", offset);
            pin.awvalid = !aw && (pin.awvalid || !random_.chance(stalls));
            pin.wvalid = !w && (pin.wvalid || !random_.chance(stalls));
            pin.bready = !random_.chance(stalls);
            cycle_();
            aw |= aw_;
            w |= w_;
            if (b_) break;
        }
        pin.awvalid = pin.wvalid = pin.bready = 0;
    }
    uint32_t read(unsigned offset) {
        bool ar = false;
        pin.araddr = offset;
        for (int i = 0;; ++i) {
            CHECK(i < 200, "a register read without an answer, offset 0x%x", offset);
            pin.arvalid = !ar && (pin.arvalid || !random_.chance(stalls));
            pin.rready = !random_.chance(stalls);
            cycle_();
            ar |= ar_;
            if (r_) break;
        }
        pin.arvalid = pin.rready = 0;
        return data_;
    }

    LiteSignals pin;
    double stalls = 0;

  private:
    Random& random_;
    std::function<void()> cycle_;
    bool aw_ = false, w_ = false, b_ = false, ar_ = false, r_ = false;
    uint32_t data_ = 0;
};

// The signals of a kernel's s_axi_control.
template <class Model>
LiteSignals lite_of(Model& top) {
    return {top.s_axi_control_AWVALID, top.s_axi_control_AWREADY, top.s_axi_control_AWADDR,
            top.s_axi_control_WVALID,  top.s_axi_control_WREADY,  top.s_axi_control_WDATA,
            top.s_axi_control_WSTRB,   top.s_axi_control_BVALID,  top.s_axi_control_BREADY,
            top.s_axi_control_ARVALID, top.s_axi_control_ARREADY, top.s_axi_control_ARADDR,
            top.s_axi_control_RVALID,  top.s_axi_control_RREADY,  top.s_axi_control_RDATA};
}
