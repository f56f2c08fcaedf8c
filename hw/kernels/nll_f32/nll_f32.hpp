// nll_f32: Negative log-likelihood of class indices in float32, with weights, and its gradient.
#pragma once
#include <cstdint>

#include "../../include/nll.hpp"

namespace nll_f32_config {
constexpr int OUTSTANDING = 8;     // bursts that a port may have under way: DDR answers after 37 to 85 cycles
constexpr int BURST = 16;          // the longest of an AXI3 port of the Zynq-7000 PS
constexpr int COSIM_DEPTH = 32768;  // elements behind each pointer in co-simulation
}  // namespace nll_f32_config

// op: see nll::Op. Forward, `source` holds log-probabilities [batch, classes, inner]; `result` receives
// one loss, or [batch, inner] of them, and `total` the sum of the weights. Backward, `source` is the
// gradient of the loss or losses, `total` is read, and `result` receives [batch, classes, inner].
// weighted: 0 when all classes weigh 1 and `weight` is not read. Strides in elements.
void nll_f32(const float* source, const int64_t* target, const float* weight, float* result, float* total,
             int op, int reduction, int batch, int classes, int inner, int ignore_index, int weighted,
             int source_image, int source_class, int source_inner, int target_image, int target_inner);
