// fir_fixed: fir for fractions, in fixed point, over the samples of one AXI4-Stream packet.
//
// | parameter | value                  | why                                                           |
// |-----------|------------------------|---------------------------------------------------------------|
// | TAPS      | 16                     | as fir; a product of 16 bits takes 1 DSP, one of 32 bits 3    |
// | BITS      | 16                     | a sample of sound, and the width of the stream                |
// | Number    | ap_fixed<16, 1>        | -1 up to 1 in steps of 2^-15; rounded and saturated           |
// | Sum       | ap_fixed<36, 6>        | 16 products of 32 bits, 4 bits more: nothing is lost          |
#pragma once
#include <ap_axi_sdata.h>
#include <ap_fixed.h>
#include <hls_stream.h>

namespace fir_fixed_config {
constexpr int TAPS = 16;
constexpr int BITS = 16;
constexpr int LOG_TAPS = 4;
// Where a number is assigned: to the nearest step, halves upwards (AP_RND), and to the end of the range
// beyond it (AP_SAT). Without the two, digits are cut off, and a sum of 1 wraps round to -1.
using Number = ap_fixed<BITS, 1, AP_RND, AP_SAT>;
using Sum = ap_fixed<2 * BITS + LOG_TAPS, 2 + LOG_TAPS>;
using Beat = ap_axiu<BITS, 0, 0, 0>;  // TDATA, TKEEP, TSTRB, TLAST

static_assert(TAPS == 1 << LOG_TAPS, "a sum of TAPS products has LOG_TAPS bits more");
static_assert(BITS == 16, "a sample is an int16 for the host");
}  // namespace fir_fixed_config

// y[i] = c[0] * x[i] + c[1] * x[i-1] + ... + c[TAPS-1] * x[i-TAPS+1], exact, then rounded to Number; samples
// before the packet are 0. Samples and coefficients count steps of 2^-15; of a coefficient's word the lower
// 16 bits matter. One start handles one packet: it ends with the beat that carries TLAST. TKEEP, TSTRB and
// TLAST go on unchanged.
void fir_fixed(hls::stream<fir_fixed_config::Beat>& samples, hls::stream<fir_fixed_config::Beat>& filtered,
               const int coefficients[fir_fixed_config::TAPS]);
