// hls::stream for the estimator: each access is a call that the scheduler knows, and the word goes
// through the stream object. UG1399, "HLS Stream Library".
#pragma once
#include <cstddef>

extern "C" {
void __hls_stream_read(const volatile void*) noexcept;
void __hls_stream_write(volatile void*) noexcept;
bool __hls_stream_empty(const volatile void*) noexcept;
bool __hls_stream_full(const volatile void*) noexcept;
}

namespace hls {
template <class AP_T, int AP_DEPTH = 0> class stream;
template <class AP_T> class stream<AP_T, 0> {
 public:
  AP_T word;
  stream() = default;
  explicit stream(const char*) {}
  template <class AP_NAME> explicit stream(const AP_NAME&) {}
  stream(const stream&) = delete;
  stream& operator=(const stream&) = delete;
#define AP_INLINE_ __attribute__((always_inline)) inline
  AP_INLINE_ AP_T read() { __hls_stream_read(this); return word; }
  AP_INLINE_ void read(AP_T& v) { __hls_stream_read(this); v = word; }
  AP_INLINE_ void operator>>(AP_T& v) { read(v); }
  AP_INLINE_ void write(const AP_T& v) { word = v; __hls_stream_write(this); }
  AP_INLINE_ void operator<<(const AP_T& v) { write(v); }
  AP_INLINE_ bool read_nb(AP_T& v) { bool ok = !__hls_stream_empty(this); __hls_stream_read(this); v = word; return ok; }
  AP_INLINE_ bool write_nb(const AP_T& v) { bool ok = !__hls_stream_full(this); write(v); return ok; }
  AP_INLINE_ bool empty() const { return __hls_stream_empty(this); }
  AP_INLINE_ bool full() const { return __hls_stream_full(this); }
  std::size_t size() const { return 0; }
  std::size_t capacity() const { return 0; }
};
// A stream with a depth is one without, for the functions that take it.
template <class AP_T, int AP_DEPTH> class stream : public stream<AP_T, 0> {
 public:
  using stream<AP_T, 0>::stream;
  stream() = default;
};
}  // namespace hls

