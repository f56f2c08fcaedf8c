// Signals without a model behind them, and a board's memory: what the benches stand on.
#pragma once

#include <array>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <stdexcept>
#include <string>
#include <vector>

#include <sys/mman.h>
#include <unistd.h>

#include "axi_port.hpp"

namespace bench {

using namespace pynq_torch::rtl;

inline void expect_equal(const std::string& what, uint64_t got, uint64_t want) {
    if (got != want)
        throw std::runtime_error(what + " is " + std::to_string(got) + ", expected " +
                                 std::to_string(want));
}
inline void expect_text(const std::string& got, const std::string& want) {
    if (got != want) throw std::runtime_error("'" + got + "', expected '" + want + "'");
}
#define EXPECT(got, want) \
    expect_equal("line " + std::to_string(__LINE__) + ": " #got, uint64_t(got), uint64_t(want))

class FakeModel {
  public:
    Pin add(const std::string& name, uint32_t width, uint32_t kind) {
        names_.push_back(name);
        storage_.push_back({});
        signals_.push_back({names_.back().c_str(), storage_.back().words.data(), width, kind});
        return Pin(storage_.back().words.data(), width);
    }
    Pins pins() const { return Pins(signals_.data(), signals_.size()); }
    const std::vector<Signal>& signals() const { return signals_; }

    // The signals of an AXI4 port.
    void add_axi(const std::string& prefix, uint32_t width, bool reads = true, bool writes = true) {
        for (const char* ax : {"AR", "AW"}) {
            if (!(ax[1] == 'R' ? reads : writes)) continue;
            const std::string p = prefix + "_" + ax;
            add(p + "VALID", 1, kOutput), add(p + "READY", 1, kInput);
            add(p + "ADDR", 64, kOutput), add(p + "LEN", 8, kOutput), add(p + "SIZE", 3, kOutput);
            add(p + "BURST", 2, kOutput), add(p + "ID", 4, kOutput), add(p + "LOCK", 2, kOutput);
        }
        if (reads) {
            add(prefix + "_RVALID", 1, kInput), add(prefix + "_RREADY", 1, kOutput);
            add(prefix + "_RDATA", width, kInput), add(prefix + "_RLAST", 1, kInput);
            add(prefix + "_RRESP", 2, kInput), add(prefix + "_RID", 4, kInput);
        }
        if (writes) {
            add(prefix + "_WVALID", 1, kOutput), add(prefix + "_WREADY", 1, kInput);
            add(prefix + "_WDATA", width, kOutput), add(prefix + "_WSTRB", width / 8, kOutput);
            add(prefix + "_WLAST", 1, kOutput), add(prefix + "_BVALID", 1, kInput);
            add(prefix + "_BREADY", 1, kOutput), add(prefix + "_BRESP", 2, kInput);
            add(prefix + "_BID", 4, kInput);
        }
    }

  private:
    struct Storage {
        std::array<uint32_t, 32> words{};
    };
    std::deque<std::string> names_;
    std::deque<Storage> storage_;
    std::vector<Signal> signals_;
};

// 2 MB of DDR of which [kBegin, kEnd) belongs to a buffer.
struct Board {
    static constexpr uint64_t kDdr = 2 << 20, kBegin = 0x100000, kEnd = 0x120000;
    static constexpr uint32_t kPorts = 8, kRecords = 1 << 14;

    MemoryMap map{true};
    std::vector<uint64_t> grants{1, 1, kBegin, kEnd};
    CounterTable* counters;
    TraceRing* trace;

    Board() {
        const int fd = memfd_create("ddr", 0);
        if (fd < 0 || ftruncate(fd, kDdr) != 0) std::abort();
        map.add_window(0, kDdr, fd, 0);
        map.use_grants(grants.data());
        close(fd);
        counters = new (std::calloc(1, CounterTable::bytes(kPorts))) CounterTable(kPorts);
        trace = new (std::calloc(1, TraceRing::bytes(kRecords))) TraceRing(kRecords);
    }
};

}  // namespace bench
