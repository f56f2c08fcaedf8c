// half: IEEE 754 binary16 (UG1399, "Floats and Doubles"). An operation is done in float and rounded
// once more, which for + - * / and sqrt gives the correctly rounded result: float's 24 bits are at
// least 2 * 11 + 2.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <ostream>
#include <type_traits>
#include <utility>

class half {
  public:
    half() = default;
    template <class Number, class = std::enable_if_t<std::is_arithmetic<Number>::value>>
    half(Number value) : bits_(round(double(value))) {}
    // ap_int and ap_fixed.
    template <class Fixed, class = void,
              class = decltype(std::declval<const Fixed&>().to_double())>
    explicit half(const Fixed& value) : bits_(round(value.to_double())) {}

    static half from_bits(uint16_t bits) {
        half result;
        result.bits_ = bits;
        return result;
    }
    uint16_t get_bits() const { return bits_; }
    void set_bits(uint16_t bits) { bits_ = bits; }

    operator float() const { return expand(bits_); }

    half operator-() const { return from_bits(uint16_t(bits_ ^ 0x8000)); }
    half operator+() const { return *this; }
    half& operator++() { return *this = half(float(*this) + 1.0f); }
    half& operator--() { return *this = half(float(*this) - 1.0f); }
    half operator++(int) {
        const half old = *this;
        ++*this;
        return old;
    }
    half operator--(int) {
        const half old = *this;
        --*this;
        return old;
    }
    template <class Other> half& operator+=(const Other& other) { return *this = half(*this + other); }
    template <class Other> half& operator-=(const Other& other) { return *this = half(*this - other); }
    template <class Other> half& operator*=(const Other& other) { return *this = half(*this * other); }
    template <class Other> half& operator/=(const Other& other) { return *this = half(*this / other); }

  private:
    // Round to nearest, ties to even, straight from double: no rounding happens twice.
    static uint16_t round(double value) {
        uint64_t word;
        std::memcpy(&word, &value, sizeof word);
        const uint16_t sign = uint16_t(word >> 48) & 0x8000;
        word &= ~(uint64_t(1) << 63);
        const int exponent = int(word >> 52) - 1023;
        const uint64_t fraction = word & ((uint64_t(1) << 52) - 1);
        if (exponent == 1024) {  // infinity, or a NaN, which stays one
            return uint16_t(sign | 0x7c00 | (fraction ? 0x200 | uint16_t(fraction >> 42) : 0));
        }
        if (exponent > 15) return sign | 0x7c00;
        if (exponent < -25) return sign;
        const uint64_t significand = fraction | (uint64_t(1) << 52);
        // Normal numbers keep 10 bits of the fraction, subnormal ones fewer.
        const int drop = exponent >= -14 ? 42 : 42 + (-14 - exponent);
        const uint64_t half_unit = uint64_t(1) << (drop - 1);
        uint64_t kept = significand >> drop;
        const uint64_t rest = significand & ((half_unit << 1) - 1);
        if (rest > half_unit || (rest == half_unit && (kept & 1))) ++kept;
        // A carry out of the fraction lands in the exponent, as it should; 65520 becomes infinity.
        if (exponent >= -14) kept += uint64_t(exponent + 14) << 10;
        return uint16_t(sign | kept);
    }
    static float expand(uint16_t bits) {
        const uint32_t sign = uint32_t(bits & 0x8000) << 16;
        const uint32_t exponent = (bits >> 10) & 0x1f;
        const uint32_t fraction = bits & 0x3ff;
        uint32_t word;
        if (exponent == 0x1f) {
            word = sign | 0x7f800000 | (fraction << 13);
        } else if (exponent) {
            word = sign | ((exponent + 112) << 23) | (fraction << 13);
        } else {
            const float value = std::ldexp(float(fraction), -24);
            return sign ? -value : value;
        }
        float value;
        std::memcpy(&value, &word, sizeof value);
        return value;
    }

    uint16_t bits_;
};

// half with half gives half; with a wider float that; with an integer half.
namespace pynq_torch {
template <class Number>
using HalfWith = std::conditional_t<std::is_floating_point<Number>::value, Number, half>;
template <class Number> using IfNumber = std::enable_if_t<std::is_arithmetic<Number>::value, int>;
}  // namespace pynq_torch

#define PYNQ_TORCH_HALF_OPERATOR(op)                                                          \
    inline half operator op(half a, half b) { return half(float(a) op float(b)); }            \
    template <class Count, pynq_torch::IfNumber<Count> = 0>                                           \
    inline pynq_torch::HalfWith<Count> operator op(half a, Count b) {                                 \
        return pynq_torch::HalfWith<Count>(pynq_torch::HalfWith<Count>(float(a)) op                   \
                                       pynq_torch::HalfWith<Count>(b));                           \
    }                                                                                         \
    template <class Count, pynq_torch::IfNumber<Count> = 0>                                           \
    inline pynq_torch::HalfWith<Count> operator op(Count a, half b) {                                 \
        return pynq_torch::HalfWith<Count>(pynq_torch::HalfWith<Count>(a) op                          \
                                       pynq_torch::HalfWith<Count>(float(b)));                    \
    }
PYNQ_TORCH_HALF_OPERATOR(+)
PYNQ_TORCH_HALF_OPERATOR(-)
PYNQ_TORCH_HALF_OPERATOR(*)
PYNQ_TORCH_HALF_OPERATOR(/)
#undef PYNQ_TORCH_HALF_OPERATOR

#define PYNQ_TORCH_HALF_COMPARE(op)                                                         \
    inline bool operator op(half a, half b) { return float(a) op float(b); }                \
    template <class Count, pynq_torch::IfNumber<Count> = 0> inline bool operator op(half a, Count b) {  \
        return double(float(a)) op double(b);                                               \
    }                                                                                       \
    template <class Count, pynq_torch::IfNumber<Count> = 0> inline bool operator op(Count a, half b) {  \
        return double(a) op double(float(b));                                               \
    }
PYNQ_TORCH_HALF_COMPARE(==)
PYNQ_TORCH_HALF_COMPARE(!=)
PYNQ_TORCH_HALF_COMPARE(<)
PYNQ_TORCH_HALF_COMPARE(<=)
PYNQ_TORCH_HALF_COMPARE(>)
PYNQ_TORCH_HALF_COMPARE(>=)
#undef PYNQ_TORCH_HALF_COMPARE

inline std::ostream& operator<<(std::ostream& stream, half value) { return stream << float(value); }

namespace std {
template <> class numeric_limits<half> {
  public:
    static constexpr bool is_specialized = true, is_signed = true, is_integer = false;
    static constexpr bool has_infinity = true, has_quiet_NaN = true;
    static constexpr int digits = 11, max_exponent = 16, min_exponent = -13;
    static half (max)() { return half::from_bits(0x7bff); }
    static half lowest() { return half::from_bits(0xfbff); }
    static half (min)() { return half::from_bits(0x0400); }
    static half denorm_min() { return half::from_bits(0x0001); }
    static half epsilon() { return half::from_bits(0x1400); }
    static half infinity() { return half::from_bits(0x7c00); }
    static half quiet_NaN() { return half::from_bits(0x7e00); }
};
}  // namespace std
