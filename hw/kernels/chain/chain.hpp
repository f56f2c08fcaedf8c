// chain: three processes that work at the same time, each on what the one before hands on.
//
// | parameter | value | why                                                               |
// |-----------|-------|-------------------------------------------------------------------|
// | DEPTH     | 2     | places of a FIFO: enough where every process takes one a cycle    |
// | DATA_BITS | 32    | one sample a beat, the width of the DMA's stream                  |
#pragma once
#include <ap_axi_sdata.h>
#include <hls_stream.h>

namespace chain_config {
constexpr int DEPTH = 2;
constexpr int DATA_BITS = 32;
using Beat = ap_axiu<DATA_BITS, 0, 0, 0>;  // TDATA, TKEEP, TSTRB, TLAST

static_assert(DATA_BITS == 32, "a sample is an int32");
static_assert(DEPTH >= 2, "with one place, writer and reader would take turns");
}  // namespace chain_config

// Reads n int32 samples and writes as many sums, TLAST with the last one: each sample times gain; 0
// where that is below limit; the sum of those so far. All modulo 2^32. TLAST of the input does not
// count. n <= 0 does nothing.
void chain(hls::stream<chain_config::Beat>& samples, hls::stream<chain_config::Beat>& sums, int gain, int limit, int n);
