// hls:: mathematics for the estimator: calls that the table of operators knows by name.
// UG1399, "HLS Math Library".
#pragma once
#include <cmath>
#include <ap_fixed.h>
#include <hls_half.h>

#define AP_UNARY(NAME) \
  extern "C" __attribute__((const)) float __hls_##NAME##_f32(float) noexcept; \
  extern "C" __attribute__((const)) double __hls_##NAME##_f64(double) noexcept; \
  namespace hls { \
  AP_INLINE float NAME(float x) { return __hls_##NAME##_f32(x); } \
  AP_INLINE float NAME##f(float x) { return __hls_##NAME##_f32(x); } \
  AP_INLINE double NAME(double x) { return __hls_##NAME##_f64(x); } \
  template <class AP_T, std::enable_if_t<std::is_integral<AP_T>::value, int> = 0> \
  AP_INLINE double NAME(AP_T x) { return __hls_##NAME##_f64((double)x); } \
  template <int AP_W, int AP_I, bool AP_S, ap_q_mode AP_Q, ap_o_mode AP_O> \
  AP_INLINE ap_fixed<AP_W, AP_I> NAME(const ap_fixed_base<AP_W, AP_I, AP_S, AP_Q, AP_O>& x) { return __hls_##NAME##_f32((float)x); } \
  template <int AP_W, bool AP_S> \
  AP_INLINE ap_int_base<AP_W, AP_S> NAME(const ap_int_base<AP_W, AP_S>& x) { return __hls_##NAME##_f32(x.to_float()); } \
  AP_INLINE half NAME(half x) { return (half)__hls_##NAME##_f32(x); } \
  }
AP_UNARY(acos) AP_UNARY(asin) AP_UNARY(atan) AP_UNARY(cos) AP_UNARY(sin) AP_UNARY(tan) AP_UNARY(cosh) AP_UNARY(sinh)
AP_UNARY(tanh) AP_UNARY(exp) AP_UNARY(exp2) AP_UNARY(exp10) AP_UNARY(expm1) AP_UNARY(log) AP_UNARY(log2)
AP_UNARY(log10) AP_UNARY(log1p) AP_UNARY(sqrt) AP_UNARY(rsqrt) AP_UNARY(recip) AP_UNARY(cbrt) AP_UNARY(floor)
AP_UNARY(ceil) AP_UNARY(round) AP_UNARY(trunc) AP_UNARY(rint) AP_UNARY(erf) AP_UNARY(cospi) AP_UNARY(sinpi)
AP_UNARY(fabs)
#undef AP_UNARY
#define AP_BINARY(NAME) \
  extern "C" __attribute__((const)) float __hls_##NAME##_f32(float, float) noexcept; \
  extern "C" __attribute__((const)) double __hls_##NAME##_f64(double, double) noexcept; \
  namespace hls { \
  AP_INLINE float NAME(float x, float y) { return __hls_##NAME##_f32(x, y); } \
  AP_INLINE float NAME##f(float x, float y) { return __hls_##NAME##_f32(x, y); } \
  AP_INLINE double NAME(double x, double y) { return __hls_##NAME##_f64(x, y); } \
  AP_INLINE half NAME(half x, half y) { return (half)__hls_##NAME##_f32(x, y); } \
  template <class AP_T, class AP_T2> AP_INLINE auto NAME(const AP_T& x, const AP_T2& y) { \
    if constexpr (ap::is_fixed<AP_T> && ap::is_fixed<AP_T2>) \
      return ap_fixed<AP_T::width, AP_T::iwidth>(__hls_##NAME##_f32((float)x, (float)y)); \
    else \
      return __hls_##NAME##_f64((double)x, (double)y); \
  } \
  }
AP_BINARY(atan2) AP_BINARY(pow) AP_BINARY(fmod) AP_BINARY(hypot) AP_BINARY(fmax) AP_BINARY(fmin) AP_BINARY(copysign)
#undef AP_BINARY
namespace hls {
template <class AP_T> AP_INLINE AP_T abs(AP_T x) { return x < 0 ? (AP_T)-x : x; }
template <class AP_T> AP_INLINE AP_T max(AP_T a, AP_T b) { return a > b ? a : b; }
template <class AP_T> AP_INLINE AP_T min(AP_T a, AP_T b) { return a < b ? a : b; }
template <class AP_T> AP_INLINE bool isnan(AP_T x) { return x != x; }
template <class AP_T> AP_INLINE bool isinf(AP_T x) { return __builtin_isinf(x); }
template <class AP_T> AP_INLINE bool signbit(AP_T x) { return x < 0; }
AP_INLINE void sincos(float x, float* s, float* c) { *s = sin(x); *c = cos(x); }
AP_INLINE void sincosf(float x, float* s, float* c) { *s = sin(x); *c = cos(x); }
}  // namespace hls
#include <hls_parts.h>
