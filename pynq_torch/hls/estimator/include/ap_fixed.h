// Fixed point for the estimator: a scaled _BitInt, with the widths and roundings of ap_fixed.h.
// UG1399, "Arbitrary Precision Fixed-Point Data Types".
#pragma once
#include <ap_int.h>

// A conversion of a scaled integer: HLS subtracts from the exponent and does not multiply.
extern "C" __attribute__((const)) float __hls_scale_f32(float, int);
extern "C" __attribute__((const)) double __hls_scale_f64(double, int);

template <int AP_W, int AP_I, bool AP_S, ap_q_mode AP_Q, ap_o_mode AP_O>
struct ap_fixed_base {
  static constexpr int width = AP_W, iwidth = AP_I, AP_F = AP_W - AP_I;
  using AP_V = ap::raw_t<AP_W, AP_S>;
  ap::cell<AP_W, AP_S> V;
  AP_CONSTANT AP_V get() const { return V.get(); }

  ap_fixed_base() = default;
  // Take a raw value with F2 bits after the point.
  template <int AP_F2, class AP_T> AP_CONSTANT static AP_V fitted(const AP_T& given) {
    AP_T v = given;
    if constexpr (AP_F2 > AP_F) {
      constexpr int drop = AP_F2 - AP_F;
      if constexpr (AP_Q == AP_RND || AP_Q == AP_RND_INF || AP_Q == AP_RND_CONV || AP_Q == AP_RND_MIN_INF ||
                    AP_Q == AP_RND_ZERO)
        v = (AP_T)(v + ((AP_T)1 << (drop - 1)));
      else if constexpr (AP_Q == AP_TRN_ZERO)
        v = (AP_T)(v + (v < 0 ? (AP_T)(((AP_T)1 << drop) - 1) : (AP_T)0));
      return limited((AP_T)(v >> drop));
    } else if constexpr (AP_F2 < AP_F) {
      using AP_X = ap::raw_t<(int)sizeof(AP_T) * 8 + AP_F - AP_F2, true>;
      return limited((AP_X)((AP_X)v * ((AP_X)1 << (AP_F - AP_F2))));
    } else {
      return limited(v);
    }
  }
  template <class AP_T> AP_CONSTANT static AP_V limited(const AP_T& v) {
    if constexpr (AP_O == AP_SAT || AP_O == AP_SAT_SYM) {
      constexpr auto top = (ap::raw_t<AP_W + 1, true>)(((unsigned _BitInt(AP_W + 1))1 << (AP_W - AP_S)) - 1);
      constexpr auto low = AP_S ? (ap::raw_t<AP_W + 1, true>)(-top - (AP_O == AP_SAT)) : (ap::raw_t<AP_W + 1, true>)0;
      return v > top ? (AP_V)top : v < low ? (AP_V)low : (AP_V)v;
    } else {
      return (AP_V)v;
    }
  }
  template <int AP_W2, int AP_I2, bool AP_S2, ap_q_mode AP_Q2, ap_o_mode AP_O2>
  AP_CONSTANT ap_fixed_base(const ap_fixed_base<AP_W2, AP_I2, AP_S2, AP_Q2, AP_O2>& o)
      : V(fitted<AP_W2 - AP_I2>((ap::raw_t<AP_W2 + 1, true>)o.get())) {}
  template <int AP_W2, int AP_I2, bool AP_S2, ap_q_mode AP_Q2, ap_o_mode AP_O2>
  AP_INLINE ap_fixed_base(const volatile ap_fixed_base<AP_W2, AP_I2, AP_S2, AP_Q2, AP_O2>& o)
      : V(fitted<AP_W2 - AP_I2>((ap::raw_t<AP_W2 + 1, true>)(ap::raw_t<AP_W2, AP_S2>)o.V.kept)) {}
  template <int AP_W2, bool AP_S2> AP_CONSTANT ap_fixed_base(const ap_int_base<AP_W2, AP_S2>& o)
      : V(fitted<0>((ap::raw_t<AP_W2 + 1, true>)o.get())) {}
  template <int AP_W2, bool AP_S2> AP_INLINE ap_fixed_base(const ap_range_ref<AP_W2, AP_S2>& r)
      : ap_fixed_base(ap_int_base<AP_W2, false>(r)) {}
  template <int AP_W2, bool AP_S2> AP_INLINE ap_fixed_base(const ap_bit_ref<AP_W2, AP_S2>& r) : ap_fixed_base((bool)r) {}
  template <class AP_T, std::enable_if_t<std::is_integral<AP_T>::value, int> = 0>
  AP_CONSTANT ap_fixed_base(AP_T v) : V(fitted<0>((ap::raw_t<(int)sizeof(AP_T) * 8 + 1, true>)v)) {}
  template <class AP_T, std::enable_if_t<ap::is_real<AP_T>, int> = 0>
  AP_CONSTANT ap_fixed_base(AP_T v) : V(from(v)) {}
  template <class AP_T> AP_CONSTANT static AP_V from(AP_T v) {
    constexpr AP_T factor = (AP_T)scale();
    if (__builtin_constant_p(v)) return (AP_V)(_BitInt(AP_W + 2))(v * factor);
    if constexpr (sizeof(AP_T) <= 4) return (AP_V)(_BitInt(AP_W + 2))__hls_scale_f32(v, AP_F);
    return (AP_V)(_BitInt(AP_W + 2))__hls_scale_f64(v, AP_F);
  }
  AP_INLINE ap_fixed_base(const char*) : V(0) {}
  static constexpr double scale() {
    double s = 1;
    for (int i = 0; i < AP_F; ++i) s *= 2;
    for (int i = 0; i < -AP_F; ++i) s /= 2;
    return s;
  }

  AP_INLINE float to_float() const { return __hls_scale_f32((float)get(), -AP_F); }
  AP_INLINE double to_double() const { return __hls_scale_f64((double)get(), -AP_F); }
  AP_INLINE long long whole() const {
    if constexpr (AP_F > 0) return (long long)(get() >> AP_F);
    else return (long long)get() << -AP_F;
  }
  AP_INLINE int to_int() const { return (int)whole(); }
  AP_INLINE unsigned to_uint() const { return (unsigned)whole(); }
  AP_INLINE long to_long() const { return (long)whole(); }
  AP_INLINE unsigned long to_ulong() const { return (unsigned long)whole(); }
  AP_INLINE long long to_int64() const { return whole(); }
  AP_INLINE unsigned long long to_uint64() const { return (unsigned long long)whole(); }
  AP_INLINE char to_char() const { return (char)whole(); }
  AP_INLINE half to_half() const { return (half)to_float(); }
  AP_INLINE ap_int_base<(AP_I > 1 ? AP_I : 1), AP_S> to_ap_int_base() const { return whole(); }
  AP_INLINE const char* to_string(unsigned char = 2, bool = false) const { return ""; }
  template <class AP_T, std::enable_if_t<std::is_integral<AP_T>::value && !std::is_same<AP_T, bool>::value, int> = 0>
  AP_INLINE operator AP_T() const { return (AP_T)whole(); }
  AP_INLINE operator bool() const { return get() != 0; }
  AP_INLINE operator half() const { return to_half(); }
  AP_INLINE operator float() const { return to_float(); }
  AP_INLINE operator double() const { return to_double(); }
  AP_INLINE ap_int_base<AP_W, AP_S>& bits() { return *reinterpret_cast<ap_int_base<AP_W, AP_S>*>(this); }
  AP_INLINE const ap_int_base<AP_W, AP_S>& bits() const { return *reinterpret_cast<const ap_int_base<AP_W, AP_S>*>(this); }
  AP_INLINE auto range(int hi, int lo) { return bits().range(hi, lo); }
  AP_INLINE auto range() { return bits().range(); }
  AP_INLINE auto operator()(int hi, int lo) { return bits()(hi, lo); }
  AP_INLINE auto range(int hi, int lo) const { return bits().range(hi, lo); }
  AP_INLINE auto range() const { return bits().range(AP_W - 1, 0); }
  AP_INLINE auto operator()(int hi, int lo) const { return bits()(hi, lo); }
  AP_INLINE auto operator[](int i) { return bits()[i]; }
  AP_INLINE auto operator[](int i) const { return bits()[i]; }
  AP_INLINE auto bit(int i) { return bits()[i]; }
  AP_INLINE bool bit(int i) const { return bits()[i]; }
  // Bits are counted from the point here.
  AP_INLINE auto get_bit(int i) { return bits()[i + AP_F]; }
  AP_INLINE bool get_bit(int i) const { return bits()[i + AP_F]; }
  AP_INLINE int length() const { return AP_W; }
  AP_INLINE int wl() const { return AP_W; }
  AP_INLINE int iwl() const { return AP_I; }
  AP_INLINE bool is_neg() const { return AP_S && get() < 0; }
  AP_INLINE bool is_zero() const { return get() == 0; }
  AP_INLINE auto operator-() const {
    ap_fixed_base<AP_W + 1, AP_I + 1, true> r;
    r.V = (ap::raw_t<AP_W + 1, true>)-(ap::raw_t<AP_W + 1, true>)get();
    return r;
  }
  AP_INLINE ap_fixed_base operator+() const { return *this; }
  AP_INLINE ap_fixed_base operator~() const { ap_fixed_base r; r.V = (AP_V)~get(); return r; }
  AP_INLINE bool operator!() const { return get() == 0; }
  // By as many places as it has, or more: all of them are the sign. In C++ that is undefined.
  AP_INLINE ap_fixed_base operator>>(int n) const { ap_fixed_base r; r.V = (AP_V)(get() >> (n < AP_W ? n : AP_W - 1)); return r; }
  AP_INLINE ap_fixed_base operator<<(int n) const { ap_fixed_base r; r.V = (AP_V)(get() << n); return r; }
#define AP_SHIFT(OP) \
  template <class AP_T, std::enable_if_t<ap::native<AP_T>::is && !std::is_same<AP_T, int>::value, int> = 0> \
  AP_INLINE ap_fixed_base operator OP(AP_T n) const { return *this OP (int)n; } \
  template <int AP_W2, bool AP_S2> AP_INLINE ap_fixed_base operator OP(const ap_int_base<AP_W2, AP_S2>& n) const { \
    return *this OP n.to_int(); \
  } \
  template <class AP_T> AP_INLINE ap_fixed_base& operator OP##=(const AP_T& n) { return *this = *this OP n; }
  AP_SHIFT(<<) AP_SHIFT(>>)
#undef AP_SHIFT
  AP_INLINE ap_fixed_base& operator++() { return *this = ap_fixed_base(*this + 1); }
  AP_INLINE ap_fixed_base& operator--() { return *this = ap_fixed_base(*this - 1); }
  AP_INLINE ap_fixed_base operator++(int) { ap_fixed_base t = *this; ++*this; return t; }
  AP_INLINE ap_fixed_base operator--(int) { ap_fixed_base t = *this; --*this; return t; }
#define AP_ASSIGN(OP) \
  template <class AP_T> AP_INLINE ap_fixed_base& operator OP##=(const AP_T& o) { return *this = ap_fixed_base(*this OP o); }
  AP_ASSIGN(+) AP_ASSIGN(-) AP_ASSIGN(*) AP_ASSIGN(/) AP_ASSIGN(&) AP_ASSIGN(|) AP_ASSIGN(^)
#undef AP_ASSIGN
};

namespace ap {
template <class AP_T, class = void> constexpr bool is_fixed = false;
template <class AP_T> constexpr bool is_fixed<AP_T, std::void_t<decltype(AP_T::iwidth)>> = true;
// Of volatile numbers. A template is no copy constructor, with which clang would hand numbers over in
// memory; ap_int has one, since clang packs structs of what it can copy freely into one word.
template <class AP_T, class AP_OF>
using if_volatile = std::enable_if_t<std::is_volatile<AP_T>::value && std::is_same<std::remove_cv_t<AP_T>, AP_OF>::value, int>;
}  // namespace ap

template <int AP_W, int AP_I, ap_q_mode AP_Q = AP_TRN, ap_o_mode AP_O = AP_WRAP, int AP_N = 0>
struct ap_fixed : ap_fixed_base<AP_W, AP_I, true, AP_Q, AP_O> {
  using ap_fixed_base<AP_W, AP_I, true, AP_Q, AP_O>::ap_fixed_base;
  ap_fixed() = default;
  template <class AP_T, ap::if_volatile<AP_T, ap_fixed> = 0> AP_INLINE ap_fixed(AP_T& o) { this->V.kept = o.V.kept; }
  template <class AP_T, ap::if_volatile<AP_T, ap_fixed> = 0> AP_INLINE ap_fixed& operator=(AP_T& o) { this->V.kept = o.V.kept; return *this; }
  ap_fixed& operator=(const ap_fixed&) = default;
  AP_INLINE void operator=(const ap_fixed& o) volatile { this->V.kept = o.V.kept; }
  template <class AP_T, ap::if_volatile<AP_T, ap_fixed> = 0> AP_INLINE void operator=(AP_T& o) volatile { this->V.kept = o.V.kept; }
  AP_CONSTANT ap_fixed(const ap_fixed_base<AP_W, AP_I, true, AP_Q, AP_O>& o)
      : ap_fixed_base<AP_W, AP_I, true, AP_Q, AP_O>(o) {}
};
template <int AP_W, int AP_I, ap_q_mode AP_Q = AP_TRN, ap_o_mode AP_O = AP_WRAP, int AP_N = 0>
struct ap_ufixed : ap_fixed_base<AP_W, AP_I, false, AP_Q, AP_O> {
  using ap_fixed_base<AP_W, AP_I, false, AP_Q, AP_O>::ap_fixed_base;
  ap_ufixed() = default;
  template <class AP_T, ap::if_volatile<AP_T, ap_ufixed> = 0> AP_INLINE ap_ufixed(AP_T& o) { this->V.kept = o.V.kept; }
  template <class AP_T, ap::if_volatile<AP_T, ap_ufixed> = 0> AP_INLINE ap_ufixed& operator=(AP_T& o) { this->V.kept = o.V.kept; return *this; }
  ap_ufixed& operator=(const ap_ufixed&) = default;
  AP_INLINE void operator=(const ap_ufixed& o) volatile { this->V.kept = o.V.kept; }
  template <class AP_T, ap::if_volatile<AP_T, ap_ufixed> = 0> AP_INLINE void operator=(AP_T& o) volatile { this->V.kept = o.V.kept; }
  AP_CONSTANT ap_ufixed(const ap_fixed_base<AP_W, AP_I, false, AP_Q, AP_O>& o)
      : ap_fixed_base<AP_W, AP_I, false, AP_Q, AP_O>(o) {}
};

#define AP_TWO template <int AP_W1, int AP_I1, bool AP_S1, ap_q_mode AP_Q1, ap_o_mode AP_O1, int AP_W2, int AP_I2, bool AP_S2, ap_q_mode AP_Q2, ap_o_mode AP_O2>
#define AP_ARGS const ap_fixed_base<AP_W1, AP_I1, AP_S1, AP_Q1, AP_O1>&a, const ap_fixed_base<AP_W2, AP_I2, AP_S2, AP_Q2, AP_O2>&b
#define AP_ALIGNED \
  constexpr int f = ap::most(AP_W1 - AP_I1, AP_W2 - AP_I2), i = ap::most(AP_I1 + (AP_S2 && !AP_S1), AP_I2 + (AP_S1 && !AP_S2)) + 1; \
  using AP_R = ap::raw_t<f + i, true>; \
  AP_R x = (AP_R)((AP_R)a.get() << (f - AP_W1 + AP_I1)), y = (AP_R)((AP_R)b.get() << (f - AP_W2 + AP_I2));
// A sum has a bit more than its operands aligned, their bits by themselves have not.
#define AP_SUM(OP, SIGN, MORE) \
  AP_TWO AP_INLINE auto operator OP(AP_ARGS) { \
    AP_ALIGNED ap_fixed_base<f + i - 1 + MORE, i - 1 + MORE, SIGN> r; \
    r.V = (ap::raw_t<f + i - 1 + MORE, SIGN>)(x OP y); \
    return r; \
  }
AP_SUM(+, (AP_S1 || AP_S2), 1) AP_SUM(-, true, 1)
AP_SUM(&, (AP_S1 || AP_S2), 0) AP_SUM(|, (AP_S1 || AP_S2), 0) AP_SUM(^, (AP_S1 || AP_S2), 0)
#define AP_COMPARE(OP) AP_TWO AP_INLINE bool operator OP(AP_ARGS) { AP_ALIGNED return x OP y; }
AP_COMPARE(==) AP_COMPARE(!=) AP_COMPARE(<) AP_COMPARE(>) AP_COMPARE(<=) AP_COMPARE(>=)
AP_TWO AP_INLINE auto operator*(AP_ARGS) {
  constexpr bool s = AP_S1 || AP_S2;
  using AP_R = ap::raw_t<AP_W1 + AP_W2, s>;
  ap_fixed_base<AP_W1 + AP_W2, AP_I1 + AP_I2, s> r;
  r.V = (AP_R)((AP_R)a.get() * (AP_R)b.get());
  return r;
}
AP_TWO AP_INLINE auto operator/(AP_ARGS) {
  constexpr int f2 = AP_W2 - AP_I2 > 0 ? AP_W2 - AP_I2 : 0, w = AP_W1 + f2 + (AP_I2 < 0 ? -AP_I2 : 0) + AP_S2, i = AP_I1 + AP_W2 - AP_I2 + AP_S2;
  constexpr int wide = ap::most(w + 1, AP_W2 + 1);
  using AP_R = ap::raw_t<wide, true>;
  ap_fixed_base<w, (w - (AP_W1 - AP_I1) > i ? w - (AP_W1 - AP_I1) : i), (AP_S1 || AP_S2)> r;
  r.V = (ap::raw_t<w, (AP_S1 || AP_S2)>)((AP_R)((AP_R)a.get() << f2) / (AP_R)b.get());
  return r;
}
#define AP_MIXED(OP) \
  template <int AP_W, int AP_I, bool AP_S, ap_q_mode AP_Q, ap_o_mode AP_O, class AP_T, std::enable_if_t<ap::native<AP_T>::is, int> = 0> \
  AP_INLINE auto operator OP(const ap_fixed_base<AP_W, AP_I, AP_S, AP_Q, AP_O>& a, AP_T b) { \
    return a OP ap_fixed_base<ap::native<AP_T>::AP_W, ap::native<AP_T>::AP_W, ap::native<AP_T>::AP_S>(b); \
  } \
  template <int AP_W, int AP_I, bool AP_S, ap_q_mode AP_Q, ap_o_mode AP_O, class AP_T, std::enable_if_t<ap::native<AP_T>::is, int> = 0> \
  AP_INLINE auto operator OP(AP_T a, const ap_fixed_base<AP_W, AP_I, AP_S, AP_Q, AP_O>& b) { \
    return ap_fixed_base<ap::native<AP_T>::AP_W, ap::native<AP_T>::AP_W, ap::native<AP_T>::AP_S>(a) OP b; \
  } \
  template <int AP_W, int AP_I, bool AP_S, ap_q_mode AP_Q, ap_o_mode AP_O, class AP_T, \
            std::enable_if_t<ap::is_real<AP_T>, int> = 0> \
  AP_INLINE auto operator OP(const ap_fixed_base<AP_W, AP_I, AP_S, AP_Q, AP_O>& a, AP_T b) { return (AP_T)a OP b; } \
  template <int AP_W, int AP_I, bool AP_S, ap_q_mode AP_Q, ap_o_mode AP_O, class AP_T, \
            std::enable_if_t<ap::is_real<AP_T>, int> = 0> \
  AP_INLINE auto operator OP(AP_T a, const ap_fixed_base<AP_W, AP_I, AP_S, AP_Q, AP_O>& b) { return a OP(AP_T) b; }
AP_MIXED(+) AP_MIXED(-) AP_MIXED(*) AP_MIXED(/) AP_MIXED(&) AP_MIXED(|) AP_MIXED(^)
AP_MIXED(==) AP_MIXED(!=) AP_MIXED(<) AP_MIXED(>) AP_MIXED(<=) AP_MIXED(>=)
#undef AP_MIXED
// With an ap_int, or bits of another number, which are an integer.
#define AP_PART(OP, AP_A, WIDTH, SIGN) \
  template <int AP_W, int AP_I, bool AP_S, ap_q_mode AP_Q, ap_o_mode AP_O, int AP_W2, bool AP_S2> \
  AP_INLINE auto operator OP(const ap_fixed_base<AP_W, AP_I, AP_S, AP_Q, AP_O>& a, const AP_A<AP_W2, AP_S2>& b) { \
    return a OP ap_fixed_base<WIDTH, WIDTH, SIGN>(b); \
  } \
  template <int AP_W, int AP_I, bool AP_S, ap_q_mode AP_Q, ap_o_mode AP_O, int AP_W2, bool AP_S2> \
  AP_INLINE auto operator OP(const AP_A<AP_W2, AP_S2>& a, const ap_fixed_base<AP_W, AP_I, AP_S, AP_Q, AP_O>& b) { \
    return ap_fixed_base<WIDTH, WIDTH, SIGN>(a) OP b; \
  }
#define AP_PARTS(OP) \
  AP_PART(OP, ap_int_base, AP_W2, AP_S2) AP_PART(OP, ap_range_ref, AP_W2, false) AP_PART(OP, ap_bit_ref, 1, false)
AP_PARTS(+) AP_PARTS(-) AP_PARTS(*) AP_PARTS(/) AP_PARTS(&) AP_PARTS(|) AP_PARTS(^)
AP_PARTS(==) AP_PARTS(!=) AP_PARTS(<) AP_PARTS(>) AP_PARTS(<=) AP_PARTS(>=)
#undef AP_PARTS
#undef AP_PART
#undef AP_COMPARE
#undef AP_SUM
#undef AP_ALIGNED
#undef AP_ARGS
#undef AP_TWO
template <int AP_W, int AP_I, bool AP_S, ap_q_mode AP_Q, ap_o_mode AP_O>
std::ostream& operator<<(std::ostream& s, const ap_fixed_base<AP_W, AP_I, AP_S, AP_Q, AP_O>&);

// C's functions of a fixed-point number: in the tools' <math.h> there is only the one of double.
template <class AP_T, int = AP_T::iwidth> struct ap_of_double { using type = double; };
#define AP_OF_DOUBLE(NAME) \
  extern "C" double NAME(double) noexcept; \
  template <class AP_T> AP_INLINE typename ap_of_double<AP_T>::type NAME(const AP_T& x) { return NAME(x.to_double()); }
AP_OF_DOUBLE(sin) AP_OF_DOUBLE(cos) AP_OF_DOUBLE(tan) AP_OF_DOUBLE(asin) AP_OF_DOUBLE(acos) AP_OF_DOUBLE(atan)
AP_OF_DOUBLE(sinh) AP_OF_DOUBLE(cosh) AP_OF_DOUBLE(tanh) AP_OF_DOUBLE(exp) AP_OF_DOUBLE(log) AP_OF_DOUBLE(log2)
AP_OF_DOUBLE(log10) AP_OF_DOUBLE(sqrt) AP_OF_DOUBLE(fabs) AP_OF_DOUBLE(floor) AP_OF_DOUBLE(ceil)
#undef AP_OF_DOUBLE
#define AP_HAS_FIXED
#ifdef AP_HAS_COMPLEX
#include <ap_complex.h>
#endif
