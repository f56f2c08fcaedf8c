// affine, the part with streams: a float travels in TDATA as its bits.
#pragma once
#include <ap_axi_sdata.h>
#include <hls_stream.h>

#include "affine.hpp"

namespace affine {

constexpr int DATA_BITS = 32;
using Beat = ap_axiu<DATA_BITS, 0, 0, 0>;  // TDATA, TKEEP, TSTRB, TLAST
static_assert(sizeof(float) * 8 == DATA_BITS, "a beat is one float");

union FloatBits {
    unsigned int bits;
    float value;
};

inline float value_of(const Beat& beat) {
    FloatBits word;
    word.bits = beat.data.to_uint();
    return word.value;
}

inline unsigned int bits_of(float value) {
    FloatBits word;
    word.value = value;
    return word.bits;
}

}  // namespace affine
