// scale_stream: y = gain * x + offset on every float32 of one AXI4-Stream packet.
//
// | parameter  | value | why                                                           |
// |------------|-------|---------------------------------------------------------------|
// | DATA_BITS  | 32    | one float a beat, the width of the AXI DMA's stream in hw/overlays/stream |
#pragma once
#include <ap_axi_sdata.h>
#include <hls_stream.h>

namespace scale_stream_config {
constexpr int DATA_BITS = 32;
using Beat = ap_axiu<DATA_BITS, 0, 0, 0>;  // TDATA, TKEEP, TSTRB, TLAST

static_assert(sizeof(float) * 8 == DATA_BITS, "a beat is one float");
}  // namespace scale_stream_config

// One start handles one packet: it ends with the beat that carries TLAST. TKEEP, TSTRB and TLAST go
// on unchanged. The product is rounded before the sum, as torch does it. Returns the number of beats.
int scale_stream(hls::stream<scale_stream_config::Beat>& samples, hls::stream<scale_stream_config::Beat>& scaled,
                 float gain, float offset);
