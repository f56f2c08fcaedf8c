// Fields of a pixel on an AXI4-Stream. UG902, "HLS Video Library".
#pragma once
#include <ap_axi_sdata.h>
#include <ap_int.h>

namespace hls {
template <int AP_W, class AP_T> void AXIGetBitFields(ap_uint<AP_W>& pixel, int start, int width, AP_T& value) {
  value = (AP_T)pixel.range(start + width - 1, start).to_uint64();
}
template <int AP_W, class AP_T> void AXIGetBitFields(const ap_axiu<AP_W, 1, 1, 1>& axi, int start, int width, AP_T& value) {
  value = (AP_T)axi.data.range(start + width - 1, start).to_uint64();
}
template <int AP_W, class AP_T> void AXISetBitFields(ap_uint<AP_W>& pixel, int start, int width, AP_T value) {
  pixel.range(start + width - 1, start) = value;
}
template <int AP_W, class AP_T> void AXISetBitFields(ap_axiu<AP_W, 1, 1, 1>& axi, int start, int width, AP_T value) {
  axi.data.range(start + width - 1, start) = value;
}
}  // namespace hls
