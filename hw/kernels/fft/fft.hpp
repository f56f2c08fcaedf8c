// fft: the discrete Fourier transform of frames of 256 complex numbers in fixed point.
//
// | parameter   | value           | why                                                            |
// |-------------|-----------------|----------------------------------------------------------------|
// | LOG_N       | 8               | 256 points: two arrays of 1 KB, a BRAM of 18 Kbit each          |
// | Number      | ap_fixed<32, 2> | -2 up to 2 in steps of 2^-30: room for a length of sqrt(2)     |
// | COSIM_DEPTH | 4096            | numbers behind each pointer in co-simulation, eight frames     |
#pragma once
#include <ap_fixed.h>

namespace fft_config {
constexpr int LOG_N = 8;
constexpr int N = 1 << LOG_N;
constexpr int COSIM_DEPTH = 16 * N;
constexpr int MAX_FRAMES = 64;  // for the report of the latency only
constexpr int BURST = 16;       // the longest burst of an AXI3 port of the Zynq-7000 PS
using Number = ap_fixed<32, 2>;

static_assert(sizeof(Number) == 4, "a part of a number is a word of memory");
}  // namespace fft_config

// input, output: frames * N complex numbers, real and imaginary part side by side, both from -1 to 1;
// they may not overlap. output[f] = sum over i of input[i] * exp(-2 pi j f i / N), divided by N, in
// each part wrong by at most 2^-25: see fft.cpp. frames <= 0 does nothing.
void fft(const fft_config::Number* input, fft_config::Number* output, int frames);
