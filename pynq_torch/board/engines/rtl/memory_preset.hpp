// The numbers of the memory models, each with its source.
#pragma once

#include <cstdint>
#include <string_view>

namespace pynq_torch {
namespace rtl {

// A model of the way from a port to DDR. board/rtl/memory_model.py shows the same numbers to people.
struct Preset {
    const char* name;
    uint32_t hp_bytes;            // of an HP port in a cycle, each way; 0: any port's full width
    uint32_t hp_burst_words;      // longest burst of an HP port
    uint32_t fifo_words;          // data FIFO of an HP port, each way
    uint32_t waiting_reads;       // commands that wait for room in the read FIFO
    uint32_t writes;              // write bursts without a response
    uint32_t port_cycles;         // of a latency, in the PL's clock; the rest of it is time
    uint32_t read_latency_ps;     // from the address to the first word, DDR idle
    uint32_t write_latency_ps;    // from a burst's last word in DDR to the response
    double ddr_bytes_per_second;  // while DDR is not refreshed; 0: no limit
    uint32_t ddr_burst_bytes;     // that DDR moves at least
    uint32_t refresh_every_ps, refresh_ps;
};

inline constexpr Preset kPresets[] = {
    {
        "pynq-z2",
        // 64 bits at the PL's clock; AXI3 bursts of 16 [UG585, 5.3 "AXI_HP Interfaces"].
        8, 16,
        // 1 KB = 128 x 64 bits each way [UG585, 5.3.1]. UG585 says that 14 to 70 reads are accepted
        // "dependent upon burst lengths": 128 / 16 + 6 and 128 / 2 + 6, so 6 wait without room for
        // their data; and 8 to 32 writes, where 8 is again 128 / 16.
        128, 6, 32,
        // One outstanding read burst of 128 bytes takes 37.4 cycles of 100 MHz on average, 16 of them
        // for its words, measured on a PYNQ-Z2 [github.com/ammrat13/pynqz2-ram-tester]: 214 ns before
        // the first. 4.3 ns of that are the mean wait for a refresh in this model. 7 cycles of it
        // follow the PL's clock: an AES kernel that reads 16 bytes at a time on a PYNQ-Z2 waits 24.7,
        // 28.0, 30.1 and 39.3 cycles at 100, 125, 143 and 200 MHz, a line of 147 ns and 9.7 cycles,
        // of which its width converter takes some [github.com/necst/pynqrypt, docs/results.ipynb,
        // see docs/fidelity.md]. UG585 gives no latency of writes; the way there and back is as
        // long, and there is no early response.
        7, 139'700, 139'700,
        // 16 bits at 1050 MT/s [PYNQ-Z2 reference manual: DDR3 at 525 MHz, x16]; 87 % of it is
        // delivered [UG585, table "DDR Efficiency"]. Refresh, which is modelled by itself, takes 3.3
        // of the 13 % that are lost: the rate between two refreshes is that much higher.
        2 * 1050e6 * 0.87 / (1 - 260.0 / 7800.0),
        16,  // BL8 of 16 bits [JESD79-3, "Burst Length"]
        // tREFI up to 85 degrees and tRFC of a 4 Gb part [JESD79-3, "Refresh parameters by device
        // density"; the board has one 4 Gb x16 part].
        7'800'000, 260'000,
    },
    // Every port by itself, one beat a cycle, data in the cycle after the address.
    {"ideal", 0, 256, 0, 64, 64, 0, 0, 0, 0.0, 1, 0, 0},
};

inline const Preset* preset(std::string_view name) {
    for (const Preset& p : kPresets)
        if (name == p.name) return &p;
    return nullptr;
}

}  // namespace rtl
}  // namespace pynq_torch
