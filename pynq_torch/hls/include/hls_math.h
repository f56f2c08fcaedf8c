// hls:: mathematics (UG1399, "HLS Math Library") for float, double, half, ap_fixed and ap_int.
//
// Built-in types use the C library; the others go through double and are rounded to the argument's
// type. The vendor's cores may differ in the last bit.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "ap_fixed.h"
#include "ap_int.h"
#include "hls_half.h"

namespace hls {

namespace math_detail {
template <class T> double real(const T& value) {
    if constexpr (std::is_arithmetic<T>::value)
        return double(value);
    else if constexpr (std::is_same<T, half>::value)
        return double(float(value));
    else
        return value.to_double();
}
// What a function of T returns: integers count as double, as in <cmath>.
template <class T>
using Result = std::conditional_t<std::is_integral<T>::value, double, T>;
template <class T> constexpr bool is_float = std::is_floating_point<T>::value;
}  // namespace math_detail

#define PYNQ_TORCH_UNARY(name)                                                          \
    template <class T> math_detail::Result<T> name(T x) {                               \
        if constexpr (math_detail::is_float<T>)                                         \
            return std::name(x);                                                        \
        else                                                                            \
            return math_detail::Result<T>(std::name(math_detail::real(x)));             \
    }                                                                                   \
    inline float name##f(float x) { return std::name(x); }                              \
    inline half half_##name(half x) { return half(std::name(float(x))); }
PYNQ_TORCH_UNARY(acos)
PYNQ_TORCH_UNARY(acosh)
PYNQ_TORCH_UNARY(asin)
PYNQ_TORCH_UNARY(asinh)
PYNQ_TORCH_UNARY(atan)
PYNQ_TORCH_UNARY(atanh)
PYNQ_TORCH_UNARY(cbrt)
PYNQ_TORCH_UNARY(ceil)
PYNQ_TORCH_UNARY(cos)
PYNQ_TORCH_UNARY(cosh)
PYNQ_TORCH_UNARY(erf)
PYNQ_TORCH_UNARY(erfc)
PYNQ_TORCH_UNARY(exp)
PYNQ_TORCH_UNARY(exp2)
PYNQ_TORCH_UNARY(expm1)
PYNQ_TORCH_UNARY(floor)
PYNQ_TORCH_UNARY(lgamma)
PYNQ_TORCH_UNARY(log)
PYNQ_TORCH_UNARY(log10)
PYNQ_TORCH_UNARY(log1p)
PYNQ_TORCH_UNARY(log2)
PYNQ_TORCH_UNARY(logb)
PYNQ_TORCH_UNARY(nearbyint)
PYNQ_TORCH_UNARY(rint)
PYNQ_TORCH_UNARY(round)
PYNQ_TORCH_UNARY(sin)
PYNQ_TORCH_UNARY(sinh)
PYNQ_TORCH_UNARY(sqrt)
PYNQ_TORCH_UNARY(tan)
PYNQ_TORCH_UNARY(tanh)
PYNQ_TORCH_UNARY(tgamma)
PYNQ_TORCH_UNARY(trunc)
#undef PYNQ_TORCH_UNARY

// The second argument may be of another type: pow(x, 2), fmin(x, 0).
#define PYNQ_TORCH_BINARY(name)                                                            \
    template <class T, class U> math_detail::Result<T> name(T x, U y) {                    \
        if constexpr (math_detail::is_float<T> && std::is_same<T, U>::value)               \
            return std::name(x, y);                                                        \
        else                                                                               \
            return math_detail::Result<T>(std::name(math_detail::real(x), math_detail::real(y))); \
    }                                                                                      \
    inline float name##f(float x, float y) { return std::name(x, y); }
PYNQ_TORCH_BINARY(atan2)
PYNQ_TORCH_BINARY(copysign)
PYNQ_TORCH_BINARY(fdim)
PYNQ_TORCH_BINARY(fmax)
PYNQ_TORCH_BINARY(fmin)
PYNQ_TORCH_BINARY(fmod)
PYNQ_TORCH_BINARY(hypot)
PYNQ_TORCH_BINARY(nextafter)
PYNQ_TORCH_BINARY(pow)
PYNQ_TORCH_BINARY(remainder)
#undef PYNQ_TORCH_BINARY

template <class T> T max(T x, T y) { return x < y ? y : x; }
template <class T> T min(T x, T y) { return y < x ? y : x; }

template <class T> T abs(T x) {
    if constexpr (math_detail::is_float<T>) return std::fabs(x);
    else if constexpr (std::is_same<T, half>::value) return half::from_bits(x.get_bits() & 0x7fff);
    else return x < T(0) ? T(-x) : x;
}
template <class T> T fabs(T x) { return hls::abs(x); }
inline float fabsf(float x) { return std::fabs(x); }

template <class T> math_detail::Result<T> rsqrt(T x) {
    if constexpr (math_detail::is_float<T>) return T(1) / std::sqrt(x);
    else return math_detail::Result<T>(1.0 / std::sqrt(math_detail::real(x)));
}
template <class T> math_detail::Result<T> recip(T x) {
    if constexpr (math_detail::is_float<T>) return T(1) / x;
    else return math_detail::Result<T>(1.0 / math_detail::real(x));
}
inline float rsqrtf(float x) { return rsqrt(x); }
inline float recipf(float x) { return recip(x); }

#define PYNQ_TORCH_PI(name, function)                                                       \
    template <class T> math_detail::Result<T> name(T x) {                                   \
        return math_detail::Result<T>(std::function(math_detail::real(x) * 3.14159265358979323846)); \
    }
PYNQ_TORCH_PI(sinpi, sin)
PYNQ_TORCH_PI(cospi, cos)
PYNQ_TORCH_PI(tanpi, tan)
#undef PYNQ_TORCH_PI
template <class T> math_detail::Result<T> exp10(T x) {
    return math_detail::Result<T>(std::pow(10.0, math_detail::real(x)));
}

template <class T> void sincos(T x, T* sine, T* cosine) {
    *sine = hls::sin(x);
    *cosine = hls::cos(x);
}
inline void sincosf(float x, float* sine, float* cosine) { hls::sincos(x, sine, cosine); }

template <class T> T modf(T x, T* whole) {
    const double value = math_detail::real(x), integral = std::trunc(value);
    *whole = T(integral);
    return T(std::copysign(value - integral, value));
}
template <class T> T frexp(T x, int* exponent) { return T(std::frexp(math_detail::real(x), exponent)); }
template <class T> T ldexp(T x, int exponent) { return T(std::ldexp(math_detail::real(x), exponent)); }
template <class T> T scalbn(T x, int exponent) { return hls::ldexp(x, exponent); }
template <class T> int ilogb(T x) { return std::ilogb(math_detail::real(x)); }
template <class T> T fma(T x, T y, T z) {
    if constexpr (math_detail::is_float<T>) return std::fma(x, y, z);
    else return T(std::fma(math_detail::real(x), math_detail::real(y), math_detail::real(z)));
}
template <class T> T mad(T x, T y, T z) { return T(T(x * y) + z); }
template <class T> T divide(T x, T y) { return T(x / y); }
template <class T> long lrint(T x) { return std::lrint(math_detail::real(x)); }
template <class T> long long llrint(T x) { return std::llrint(math_detail::real(x)); }
template <class T> long lround(T x) { return std::lround(math_detail::real(x)); }
template <class T> long long llround(T x) { return std::llround(math_detail::real(x)); }

template <class T> bool isnan(T x) { return std::isnan(math_detail::real(x)); }
template <class T> bool isinf(T x) { return std::isinf(math_detail::real(x)); }
template <class T> bool isfinite(T x) { return std::isfinite(math_detail::real(x)); }
template <class T> bool isnormal(T x) {
    if constexpr (math_detail::is_float<T>) return std::isnormal(x);
    else return math_detail::real(x) != 0.0;
}
template <class T> bool signbit(T x) { return std::signbit(math_detail::real(x)); }
template <class T, class U> bool isgreater(T x, U y) { return math_detail::real(x) > math_detail::real(y); }
template <class T, class U> bool isless(T x, U y) { return math_detail::real(x) < math_detail::real(y); }

}  // namespace hls
