// The DSP library (UG902, "HLS DSP Library"): the complex multiplier, and the names and types of
// the CORDIC functions, whose loops are the vendor's, so that there is no estimate of them.
#pragma once

#include <complex>
#include <type_traits>

#include <ap_fixed.h>
#include <ap_int.h>
#include <hls_stream.h>

#if __has_attribute(unavailable)
#define HLS_UNKNOWN(NAME)                                                                         \
    __attribute__((unavailable(NAME " of hls_dsp.h is a CORDIC of the vendor's, whose latency "   \
                                    "is not known here; hls_math.h has one with an estimate")))
#else
#define HLS_UNKNOWN(NAME)
#endif

namespace hls {
struct CmpyThreeMult {};
struct CmpyFourMult {};

// Which products there are is all that the two differ in.
template <class Arch, class In, class Out>
void cmpy(const In& ar, const In& ai, const In& br, const In& bi, Out& pr, Out& pi) {
    if (std::is_same<Arch, CmpyThreeMult>::value) {
        const auto shared = br * (ar + ai);
        pr = shared - ai * (br + bi);
        pi = shared + ar * (bi - br);
    } else {
        pr = ar * br - ai * bi;
        pi = ar * bi + ai * br;
    }
}
template <class Arch, class In, class Out>
void cmpy(const std::complex<In>& a, const std::complex<In>& b, std::complex<Out>& p) {
    const In ar = a.real(), ai = a.imag(), br = b.real(), bi = b.imag();
    Out pr, pi;
    hls::cmpy<Arch>(ar, ai, br, bi, pr, pi);
    p = std::complex<Out>(pr, pi);
}

enum { CORDIC_FORMAT_RAD, CORDIC_FORMAT_PIRAD };
enum { CORDIC_FORMAT_USIG_FRAC, CORDIC_FORMAT_USIG_INT };
enum { CORDIC_ROUND_TRUNCATE, CORDIC_ROUND_POS_INF, CORDIC_ROUND_POS_NEG_INF, CORDIC_ROUND_NEAREST_EVEN };

template <int W> struct atan2_input {
    struct cartesian { std::complex<ap_fixed<W, 2> > cartesian; };
};
template <int W> struct atan2_output {
    struct phase { ap_fixed<W, 3> phase; };
};
template <int W, int Format> struct sqrt_input {
    struct in { ap_ufixed<W, Format == CORDIC_FORMAT_USIG_INT ? W : 1> in; };
};
template <int W, int Format> struct sqrt_output {
    struct out { ap_ufixed<W, Format == CORDIC_FORMAT_USIG_INT ? W : 1> out; };
};
template <int Phase, int In, int Out, int Round>
HLS_UNKNOWN("atan2")
void atan2(const typename atan2_input<In>::cartesian&, typename atan2_output<Out>::phase&);
template <int Format, int In, int Out, int Round>
HLS_UNKNOWN("sqrt")
void sqrt(const typename sqrt_input<In, Format>::in&, typename sqrt_output<Out, Format>::out&);
}  // namespace hls

#undef HLS_UNKNOWN
