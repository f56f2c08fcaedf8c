// What a Verilator model of a kernel shows to the process that runs it.
//
// Each kernel's RTL becomes a shared library of its own (pynq_torch.board.rtl.build); the process
// that owns the clock loads it and knows nothing else of it: a list of signals with a pointer each,
// and a handful of functions. The program that loads it drives the clock:
//
//     drive the inputs; clk = 0; eval; sample the outputs; clk = 1; eval
//
// so that a handshake is VALID & READY as sampled after the evaluation with clk = 0.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pynq_torch {
namespace rtl {

inline constexpr uint32_t kModelVersion = 2;

// One port of the top, or one watched net inside it.
struct Signal {
    const char* name;  // as in the source, "s_axi_control_AWVALID"; a net begins with a dot, ".ap_done"
    void* data;        // Verilator's storage: up to 8, 16, 32, 64 bits uint8_t, 16_t, 32_t, 64_t;
                       // beyond that uint32_t[(width + 31) / 32], least significant word first
    uint32_t width;
    uint32_t kind;  // SignalKind
};

enum SignalKind : uint32_t { kInput = 0, kOutput = 1, kNet = 2 };

// What registers hold before anything is written to them.
enum Fill : uint32_t { kZeros = 0, kOnes = 1, kRandom = 2 };

struct Model;  // opaque

struct ModelApi {
    uint32_t version;  // kModelVersion
    // A model of its own, in a context of its own; nullptr when there is no memory for it.
    Model* (*create)(uint32_t seed, uint32_t fill);
    void (*destroy)(Model*);
    // 0; 1 after $stop, $fatal, an assertion, or no convergence: see error(), the model is dead.
    int (*eval)(Model*);
    const char* (*error)(Model*);
    size_t (*signals)(Model*, const Signal** out);
    // Null in a build without waves. 0, or 1 with error() set.
    int (*wave_open)(Model*, const char* path);
    void (*wave_dump)(Model*, uint64_t time_ps);
    void (*wave_flush)(Model*);
    void (*wave_close)(Model*);
    // All that the model remembers, as bytes to compare: equal bytes and inputs, equal future.
    const void* (*state)(Model*, size_t* nbytes);
};

using ModelEntry = const ModelApi* (*)();
inline constexpr const char* kModelEntry = "pynq_torch_model";

}  // namespace rtl
}  // namespace pynq_torch

// The library exports this one function.
extern "C" const pynq_torch::rtl::ModelApi* pynq_torch_model();
