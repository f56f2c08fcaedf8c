// hls::stream_of_blocks for the estimator, which does not know it. UG1399, "Stream of Blocks".
#pragma once
#include "hls_stream.h"
namespace hls {
template <class AP_T, int AP_DEPTH = 2> class __attribute__((unavailable(
    "streams of blocks are not estimated; hand the array over in DATAFLOW, which doubles it"))) stream_of_blocks {
 public:
  __attribute__((unavailable("hand the array over in DATAFLOW, which doubles it"))) stream_of_blocks() {}
};
template <class AP_B> class __attribute__((unavailable("streams of blocks are not estimated"))) read_lock {
 public:
  template <class AP_S> explicit read_lock(AP_S&) {}
  template <class AP_N> auto& operator[](AP_N i) { return block[i]; }
  AP_B block;
};
template <class AP_B> class __attribute__((unavailable("streams of blocks are not estimated"))) write_lock {
 public:
  template <class AP_S> explicit write_lock(AP_S&) {}
  template <class AP_N> auto& operator[](AP_N i) { return block[i]; }
  AP_B block;
};
}
