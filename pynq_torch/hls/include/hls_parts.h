// hls::reg, which puts a register behind a value, and on a PC is the value; fp_struct, the parts of a
// floating-point number. The tools' hls_math.h has them, too.
#pragma once
#if !__has_include(<utils/x_hls_defines.h>)  // Vitis' own header has them
#include <ap_int.h>
#include <cstdint>
#include <cstring>

namespace hls {
template <class Value> inline Value reg(Value value) { return value; }
}  // namespace hls

template <class Value, class Bits, int Exponent, int Fraction> struct fp_parts {
  static constexpr int width = 1 + Exponent + Fraction, bias = (1 << (Exponent - 1)) - 1;
  static constexpr int BITS = width, EXP_BITS = Exponent, SIG_BITS = Fraction, EXP_BIAS = bias;
  ap_uint<Fraction> sig;
  ap_uint<Exponent> exp;
  ap_uint<1> sign;
  fp_parts() = default;
  fp_parts(Value value) {
    Bits bits;
    std::memcpy(&bits, &value, sizeof bits);
    take(bits);
  }
  fp_parts(ap_uint<width> bits) { take(bits); }
  ap_uint<width> data() const { return (ap_uint<width>(sign) << (width - 1)) | (ap_uint<width>(exp) << Fraction) | sig; }
  int expv() const { return int(exp) - bias; }
  // 1.x, as an integer.
  ap_uint<Fraction + 1> mantissa() const { return (ap_uint<Fraction + 1>(1) << Fraction) | sig; }
  bool __signbit() const { return sign == 1; }
  Value to_ieee() const {
    const Bits bits = Bits(data().to_uint64());
    Value value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

 private:
  void take(ap_uint<width> bits) {
    sig = bits;
    exp = bits >> Fraction;
    sign = bits >> (width - 1);
  }
};
template <class Value> struct fp_struct;
template <> struct fp_struct<float> : fp_parts<float, std::uint32_t, 8, 23> {
  using fp_parts::fp_parts;
  float to_float() const { return to_ieee(); }
  int to_int() const { return int(std::uint32_t(data())); }  // its bits
};
template <> struct fp_struct<double> : fp_parts<double, std::uint64_t, 11, 52> {
  using fp_parts::fp_parts;
  double to_double() const { return to_ieee(); }
};
#endif
