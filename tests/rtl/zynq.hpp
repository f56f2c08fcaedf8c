// A generated top with the PS7 model around it: define TOP, its module, and UNITS, its compute units.
#pragma once

#define TEXT_(x) #x
#define TEXT(x) TEXT_(x)
#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#include TEXT(JOIN(V, TOP).h)
#include TEXT(JOIN(JOIN(V, TOP), ___024root).h)

#include "ps7.hpp"

#define PS(name) top->rootp->JOIN(TOP, __DOT__ps7__DOT__##name)
#define GP(name) PS(MAXIGP0##name)
#define HP(n)                                                                                             \
    HpSignals {                                                                                           \
        PS(SAXIHP##n##ARVALID), PS(SAXIHP##n##ARREADY), PS(SAXIHP##n##ARID), PS(SAXIHP##n##ARADDR),       \
            PS(SAXIHP##n##ARLEN), PS(SAXIHP##n##ARSIZE), PS(SAXIHP##n##ARBURST), PS(SAXIHP##n##RVALID),   \
            PS(SAXIHP##n##RREADY), PS(SAXIHP##n##RID), PS(SAXIHP##n##RDATA), PS(SAXIHP##n##RRESP),        \
            PS(SAXIHP##n##RLAST), PS(SAXIHP##n##AWVALID), PS(SAXIHP##n##AWREADY), PS(SAXIHP##n##AWID),    \
            PS(SAXIHP##n##AWADDR), PS(SAXIHP##n##AWLEN), PS(SAXIHP##n##AWSIZE), PS(SAXIHP##n##AWBURST),   \
            PS(SAXIHP##n##WVALID), PS(SAXIHP##n##WREADY), PS(SAXIHP##n##WID), PS(SAXIHP##n##WDATA),       \
            PS(SAXIHP##n##WSTRB), PS(SAXIHP##n##WLAST), PS(SAXIHP##n##BVALID), PS(SAXIHP##n##BREADY),     \
            PS(SAXIHP##n##BID), PS(SAXIHP##n##BRESP)                                                      \
    }

static constexpr uint32_t DDR = 0x10000000, ROOM = 1 << 20, REGISTERS = 0x40000000, PAGE = 0x10000,
                          INTC = REGISTERS + UNITS * PAGE, DECERR = 3, AP_START = 1, AP_DONE = 2, AP_IDLE = 4;

struct Zynq : Bench<JOIN(V, TOP)> {
    Memory memory{DDR, std::vector<uint8_t>(3 * UNITS * ROOM)};
    Random random{11};
    HpPort hp0{HP(0), memory}, hp1{HP(1), memory}, hp2{HP(2), memory};
    HpPort* const ports[3] = {&hp0, &hp1, &hp2};
    Gp gp{{GP(ARVALID), GP(ARREADY), GP(ARID),    GP(ARADDR),  GP(ARLEN), GP(RVALID), GP(RREADY), GP(RID),
           GP(RDATA),   GP(RRESP),   GP(RLAST),   GP(AWVALID), GP(AWREADY), GP(AWID), GP(AWADDR), GP(WVALID),
           GP(WREADY),  GP(WDATA),   GP(WSTRB),   GP(WLAST),   GP(BVALID), GP(BREADY), GP(BID),   GP(BRESP)},
          random,
          [this] { tick(); }};

    Zynq() {
        clock = &PS(FCLKCLK);
        GP(ARVALID) = GP(AWVALID) = GP(WVALID) = GP(RREADY) = GP(BREADY) = 0;
        for (HpPort* port : ports) port->pin.rvalid = port->pin.bvalid = 0;
        PS(FCLKRESETN) = 0;
        for (int i = 0; i < 3; ++i) step();
        PS(FCLKRESETN) = 1;
        for (int i = 0; i < 20; ++i) step();
    }
    void tick() {
        for (HpPort* port : ports) port->drive(cycle, random);
        low();
        gp.settled();
        for (HpPort* port : ports) port->sample(cycle, random);
        high();
        for (HpPort* port : ports) port->after();
    }
    void set(double stalls, unsigned latency) {
        gp.stalls = stalls;
        for (HpPort* port : ports) {
            port->stalls = stalls;
            port->latency = latency;
        }
    }
    uint32_t interrupts() { return PS(IRQF2P); }
    float* floats(uint64_t address) { return reinterpret_cast<float*>(memory.at(address, 4)); }
};
