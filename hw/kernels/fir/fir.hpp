// fir: a filter with a finite impulse response over the int32 samples of one AXI4-Stream packet.
//
// | parameter | value | why                                                            |
// |-----------|-------|----------------------------------------------------------------|
// | TAPS      | 16    | a product of 32 bits takes 3 DSPs: 48 of the xc7z020's 220     |
// | DATA_BITS | 32    | one sample a beat, the width of the DMA's stream               |
#pragma once
#include <ap_axi_sdata.h>
#include <hls_stream.h>

namespace fir_config {
constexpr int TAPS = 16;
constexpr int DATA_BITS = 32;
using Beat = ap_axiu<DATA_BITS, 0, 0, 0>;  // TDATA, TKEEP, TSTRB, TLAST

static_assert(DATA_BITS == 32, "a sample is an int32");
static_assert(TAPS > 1, "a filter has a past");
}  // namespace fir_config

// y[i] = c[0] * x[i] + c[1] * x[i-1] + ... + c[TAPS-1] * x[i-TAPS+1], modulo 2^32; samples before
// the packet are 0. One start handles one packet: it ends with the beat that carries TLAST. TKEEP,
// TSTRB and TLAST go on unchanged.
void fir(hls::stream<fir_config::Beat>& samples, hls::stream<fir_config::Beat>& filtered,
         const int coefficients[fir_config::TAPS]);
