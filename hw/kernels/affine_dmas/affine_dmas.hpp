// affine_dmas: y = gain * x + offset with a gain for each element, from a stream and a DMA of their own.
//
// | parameter | value | why                                               |
// |-----------|-------|---------------------------------------------------|
// | DATA_BITS | 32    | one float a beat (affine_stream.hpp)              |
#pragma once
#include "../../include/affine_stream.hpp"

// One start handles one packet of samples: it ends with the beat that carries TLAST, which goes on with it. It takes as
// many gains, whatever TLAST they come with.
void affine_dmas(hls::stream<affine::Beat>& samples, hls::stream<affine::Beat>& gains,
                 hls::stream<affine::Beat>& results, float offset);
