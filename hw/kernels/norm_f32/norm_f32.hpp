// norm_f32: Normalises float32 channels with a mean and variance that are given, or rows with their own.
#pragma once
#include "../../include/norm.hpp"

namespace norm_f32_config {
constexpr int OUTSTANDING = 8;      // bursts that a port may have under way: DDR answers after 37 to 85 cycles
constexpr int BURST = 16;           // the longest of an AXI3 port of the Zynq-7000 PS
constexpr int COSIM_DEPTH = 65536;  // elements behind each pointer in co-simulation
}  // namespace norm_f32_config

// op: norm::BATCH reads a mean and a variance for each of `channels`; norm::LAYER normalises `outer` rows of
// `inner` elements (channels is 1), and writes the mean of each and 1 / sqrt(variance + eps).
// affine: bits of norm::Affine, which say whether weight and bias are read: one a channel, or one an
// element of a row. source and result are [outer, channels, inner]; strides in elements.
void norm_f32(const float* source, float* mean, float* variance, const float* weight, const float* bias, float* result,
              int op, int outer, int channels, int inner, int affine, float eps,
              int source_outer, int source_channel, int source_inner,
              int result_outer, int result_channel, int result_inner);
