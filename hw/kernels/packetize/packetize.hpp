// packetize: passes samples on and says where a packet ends.
//
// | parameter  | value | why                                                            |
// |------------|-------|----------------------------------------------------------------|
// | DATA_BITS  | 32    | the width of the AXI DMA's stream in hw/overlays/packets       |
#pragma once
#include <ap_axi_sdata.h>
#include <hls_stream.h>

namespace packetize_config {
constexpr int DATA_BITS = 32;
using Beat = ap_axiu<DATA_BITS, 0, 0, 0>;  // TDATA, TKEEP, TSTRB, TLAST

static_assert(DATA_BITS % 8 == 0, "TKEEP has a bit a byte");
}  // namespace packetize_config

// Reads n beats and writes them unchanged, whatever TLAST they came with; TLAST goes out with every
// beat that completes `packet` beats, and with none where packet is 0 or less. n <= 0 does nothing.
void packetize(hls::stream<packetize_config::Beat>& samples, hls::stream<packetize_config::Beat>& packets, int n,
               int packet);
