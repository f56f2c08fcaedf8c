// What the PL process shares with the board: one page for the whole PL, one box for each unit.
//
// board/rtl/layout.py knows the same offsets. Every word has one writer: the host or the process.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace pynq_torch {
namespace rtl {

constexpr uint32_t kPlMagic = 0x4c505450;
constexpr uint32_t kPlVersion = 2;
constexpr size_t kMaxPhases = 16;
constexpr size_t kRunsKept = 16;
constexpr size_t kBlockWords = 1024;
constexpr size_t kWaveBoxBytes = 8192;

enum PlState : uint32_t { kPlBooting = 0, kPlAsleep = 1, kPlRunning = 2, kPlFault = 3 };
enum FaultKind : uint32_t {
    kNoFault = 0,
    kProtocol = 1,  // a rule of AXI was broken
    kTimeout = 2,   // no ap_done in timeout_cycles
    kModel = 3,     // $fatal, $stop, an assertion, no convergence
    kAccess = 4,    // an address outside the buffers
    kCrash = 5,     // a signal
    kSetup = 6,     // the model has not the ports it was said to have
};

struct PlPage {
    uint32_t magic;                // 0
    uint32_t version;              // 4
    uint32_t nunits;               // 8
    std::atomic<uint32_t> state;   // 12  PlState
    std::atomic<uint64_t> cycle;   // 16  cycles of the clock since the overlay was loaded
    uint32_t fault_kind;           // 24
    uint32_t fault_unit;           // 28  as many as there are, or more: none of them
    uint32_t fault_signal;         // 32
    uint32_t fault_access;         // 36  0 unknown, 1 read, 2 write
    uint64_t fault_address;        // 40
    uint64_t fault_cycle;          // 48
    uint32_t fault_physical;       // 56  fault_address is one of the PL
    uint32_t fault_response;       // 60  what AXI answered: 2 SLVERR, 3 DECERR
    uint64_t counters_at;          // 64  offset of the CounterTable in this mapping
    uint64_t trace_at;             // 72  offset of the TraceRing
    char fault_port[64];           // 80
    char message[3952];            // 144
};
static_assert(offsetof(PlPage, fault_port) == 80 && offsetof(PlPage, message) == 144, "layout.py");
static_assert(sizeof(PlPage) == 4096, "layout shared with layout.py");

// One run from the AP_START write to ap_done.
struct RunRecord {
    uint64_t number, begin, end, ns;
    uint64_t idle;  // of these cycles the unit only waited for the program, and the clock went on
    uint64_t phases[kMaxPhases];
};
static_assert(sizeof(RunRecord) == 168, "layout shared with layout.py");

// kReplay: a write of the board's own, which no program makes; the trace has none of it.
enum Operation : uint32_t { kRead = 1, kWrite = 2, kReset = 3, kReplay = 4 };
enum Result : uint32_t { kAnswered = 0, kRefused = 2, kNobody = 3, kNoAnswer = 4 };

struct UnitBox {
    std::atomic<uint32_t> request;    // 0   number of the request (host)
    std::atomic<uint32_t> response;   // 4   number of the last one that was answered
    uint32_t operation;               // 8
    uint32_t slave;                   // 12  index of the AXI4-Lite interface
    uint32_t offset;                  // 16
    uint32_t count;                   // 20  words
    uint32_t result;                  // 24
    uint32_t nphases;                 // 28
    std::atomic<uint32_t> state;      // 32  State, as of an engine process
    std::atomic<uint32_t> blocked;    // 36  index of the stream it waits for
    std::atomic<uint32_t> irq;        // 40  level of the interrupt output
    uint32_t watched;                 // 44  the top's ap_* nets can be seen
    std::atomic<uint64_t> started;    // 48
    std::atomic<uint64_t> completed;  // 56
    std::atomic<uint64_t> begun;      // 64  cycle in which the current run began
    std::atomic<uint64_t> moved;      // 72  cycle of the last handshake on any port
    std::atomic<uint32_t> moved_port; // 80  index of that port
    std::atomic<uint32_t> can_move;   // 84
    std::atomic<uint64_t> read_ahead; // 88  address of a read just outside a buffer; 0: none
    uint32_t dropped;                 // 96  bursts that the last reset found on their way
    uint32_t dropped_port;            // 100 index of the first port with one
    char reserved[24];                // 104
    char phase_names[kMaxPhases][24]; // 128
    char reserved2[512];              // 512
    RunRecord runs[kRunsKept];        // 1024
    char reserved3[384];              // 3712
    uint32_t words[kBlockWords];      // 4096
    char wave_box[kWaveBoxBytes];     // 8192
};
static_assert(offsetof(UnitBox, phase_names) == 128 && offsetof(UnitBox, runs) == 1024, "layout.py");
static_assert(offsetof(UnitBox, words) == 4096 && offsetof(UnitBox, wave_box) == 8192, "layout.py");
static_assert(sizeof(UnitBox) == 16384, "layout shared with layout.py");

}  // namespace rtl
}  // namespace pynq_torch
