// affine_dma: y = gain * x + offset, a stream in and a stream out; one AXI DMA serves both.
//
// | parameter | value | why                                               |
// |-----------|-------|---------------------------------------------------|
// | DATA_BITS | 32    | one float a beat (affine_stream.hpp)              |
#pragma once
#include "../../include/affine_stream.hpp"

// One start handles one packet: it ends with the beat that carries TLAST, which goes on with it.
void affine_dma(hls::stream<affine::Beat>& samples, hls::stream<affine::Beat>& results, float gain, float offset);
