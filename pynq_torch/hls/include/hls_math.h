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
template <class Type> double real(const Type& value) {
    if constexpr (std::is_arithmetic<Type>::value)
        return double(value);
    else if constexpr (std::is_same<Type, half>::value)
        return double(float(value));
    else
        return value.to_double();
}
// What a function of T returns: integers count as double, as in <cmath>.
template <class Type>
using Result = std::conditional_t<std::is_integral<Type>::value, double, Type>;
template <class Type> constexpr bool is_float = std::is_floating_point<Type>::value;
}  // namespace math_detail

#define PYNQ_TORCH_UNARY(name)                                                          \
    template <class Type> math_detail::Result<Type> name(Type x) {                               \
        if constexpr (math_detail::is_float<Type>)                                         \
            return std::name(x);                                                        \
        else                                                                            \
            return math_detail::Result<Type>(std::name(math_detail::real(x)));             \
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
    template <class Type, class Other> math_detail::Result<Type> name(Type x, Other y) {                    \
        if constexpr (math_detail::is_float<Type> && std::is_same<Type, Other>::value)               \
            return std::name(x, y);                                                        \
        else                                                                               \
            return math_detail::Result<Type>(std::name(math_detail::real(x), math_detail::real(y))); \
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

template <class Type> Type (max)(Type x, Type y) { return x < y ? y : x; }
template <class Type> Type (min)(Type x, Type y) { return y < x ? y : x; }

template <class Type> Type abs(Type x) {
    if constexpr (math_detail::is_float<Type>) return std::fabs(x);
    else if constexpr (std::is_same<Type, half>::value) return half::from_bits(x.get_bits() & 0x7fff);
    else return x < Type(0) ? Type(-x) : x;
}
template <class Type> Type fabs(Type x) { return hls::abs(x); }
inline float fabsf(float x) { return std::fabs(x); }

template <class Type> math_detail::Result<Type> rsqrt(Type x) {
    if constexpr (math_detail::is_float<Type>) return Type(1) / std::sqrt(x);
    else return math_detail::Result<Type>(1.0 / std::sqrt(math_detail::real(x)));
}
template <class Type> math_detail::Result<Type> recip(Type x) {
    if constexpr (math_detail::is_float<Type>) return Type(1) / x;
    else return math_detail::Result<Type>(1.0 / math_detail::real(x));
}
inline float rsqrtf(float x) { return rsqrt(x); }
inline float recipf(float x) { return recip(x); }

#define PYNQ_TORCH_PI(name, function)                                                       \
    template <class Type> math_detail::Result<Type> name(Type x) {                                   \
        return math_detail::Result<Type>(std::function(math_detail::real(x) * 3.14159265358979323846)); \
    }
PYNQ_TORCH_PI(sinpi, sin)
PYNQ_TORCH_PI(cospi, cos)
PYNQ_TORCH_PI(tanpi, tan)
#undef PYNQ_TORCH_PI
template <class Type> math_detail::Result<Type> exp10(Type x) {
    return math_detail::Result<Type>(std::pow(10.0, math_detail::real(x)));
}

template <class Type> void sincos(Type x, Type* sine, Type* cosine) {
    *sine = hls::sin(x);
    *cosine = hls::cos(x);
}
inline void sincosf(float x, float* sine, float* cosine) { hls::sincos(x, sine, cosine); }

template <class Type> Type modf(Type x, Type* whole) {
    const double value = math_detail::real(x), integral = std::trunc(value);
    *whole = Type(integral);
    return Type(std::copysign(value - integral, value));
}
template <class Type> Type frexp(Type x, int* exponent) { return Type(std::frexp(math_detail::real(x), exponent)); }
template <class Type> Type ldexp(Type x, int exponent) { return Type(std::ldexp(math_detail::real(x), exponent)); }
template <class Type> Type scalbn(Type x, int exponent) { return hls::ldexp(x, exponent); }
template <class Type> int ilogb(Type x) { return std::ilogb(math_detail::real(x)); }
template <class Type> Type fma(Type x, Type y, Type z) {
    if constexpr (math_detail::is_float<Type>) return std::fma(x, y, z);
    else return Type(std::fma(math_detail::real(x), math_detail::real(y), math_detail::real(z)));
}
template <class Type> Type mad(Type x, Type y, Type z) { return Type(Type(x * y) + z); }
template <class Type> Type divide(Type x, Type y) { return Type(x / y); }
template <class Type> long lrint(Type x) { return std::lrint(math_detail::real(x)); }
template <class Type> long long llrint(Type x) { return std::llrint(math_detail::real(x)); }
template <class Type> long lround(Type x) { return std::lround(math_detail::real(x)); }
template <class Type> long long llround(Type x) { return std::llround(math_detail::real(x)); }

template <class Type> bool isnan(Type x) { return std::isnan(math_detail::real(x)); }
template <class Type> bool isinf(Type x) { return std::isinf(math_detail::real(x)); }
template <class Type> bool isfinite(Type x) { return std::isfinite(math_detail::real(x)); }
template <class Type> bool isnormal(Type x) {
    if constexpr (math_detail::is_float<Type>) return std::isnormal(x);
    else return math_detail::real(x) != 0.0;
}
template <class Type> bool signbit(Type x) { return std::signbit(math_detail::real(x)); }
template <class Type, class Other> bool isgreater(Type x, Other y) { return math_detail::real(x) > math_detail::real(y); }
template <class Type, class Other> bool isless(Type x, Other y) { return math_detail::real(x) < math_detail::real(y); }

}  // namespace hls
#include <hls_parts.h>
