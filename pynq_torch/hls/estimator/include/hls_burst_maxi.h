// hls::burst_maxi for the estimator: one word a cycle after its request. UG1399, "Using Manual Burst".
#pragma once
#include <cstddef>
#include <hls_stream.h>

namespace hls {
template <class AP_T> class burst_maxi {
 public:
  AP_T* words;
  burst_maxi(AP_T* pointer) : words(pointer) {}
  void read_request(std::size_t, std::size_t) { __hls_stream_empty(words); }
  AP_T read() { __hls_stream_read(words); return *words; }
  void write_request(std::size_t, std::size_t) { __hls_stream_full(words); }
  template <class... AP_MASK> void write(const AP_T& word, AP_MASK...) { *words = word; __hls_stream_write(words); }
  void write_response() { __hls_stream_full(words); }
};
}  // namespace hls
