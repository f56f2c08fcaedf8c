// Arbitrary-precision integers for the estimator: clang's _BitInt, so that each operation is one LLVM
// instruction of the width that HLS gives it. They compute what ap_int.h computes; only the shape of
// the code differs. UG1399, "Arbitrary Precision Data Types Library".
#pragma once
#include <cstdint>
#include <hls_half.h>
#include <iosfwd>
#include <type_traits>

#define AP_INLINE __attribute__((always_inline)) inline
#ifndef INLINE
#define INLINE AP_INLINE  // a name of the vendor's headers, which sources use
#endif
// What a table's numbers are made with: clang makes them, so that LLVM need not run thousands of calls.
#define AP_CONSTANT AP_INLINE constexpr

namespace ap {
template <int AP_W, bool AP_S> struct raw { using type = unsigned _BitInt(AP_W); };
template <int AP_W> struct raw<AP_W, true> { using type = signed _BitInt(AP_W < 2 ? 2 : AP_W); };
template <int AP_W, bool AP_S> using raw_t = typename raw<AP_W, AP_S>::type;
constexpr int most(int a, int b) { return a > b ? a : b; }

// A value in memory: whole bytes, so that copies of structs and of arrays stay single loads.
constexpr int room(int w) { return w <= 8 ? 8 : w <= 16 ? 16 : w <= 32 ? 32 : (w + 63) / 64 * 64; }
// The C type that a value becomes where C++ asks for one.
template <int AP_W, bool AP_S>
using nearest_t = std::conditional_t<
    AP_S, std::conditional_t<(AP_W <= 8), signed char, std::conditional_t<(AP_W <= 16), short, std::conditional_t<(AP_W <= 32), int, long long>>>,
    std::conditional_t<(AP_W <= 8), unsigned char,
                       std::conditional_t<(AP_W <= 16), unsigned short, std::conditional_t<(AP_W <= 32), unsigned, unsigned long long>>>>;
// The number that a text says, with 0b, 0o or 0x in front or in a base that is given.
template <class AP_V> AP_CONSTANT AP_V read(const char* s, int base) {
  const bool negative = *s == '-';
  if (*s == '-' || *s == '+') ++s;
  if (*s == '0' && s[1] > '9') {
    base = (s[1] | 32) == 'b' ? 2 : (s[1] | 32) == 'x' ? 16 : 8;
    s += 2;
  }
  AP_V v = 0;
  for (; *s; ++s) v = (AP_V)(v * (AP_V)base + (AP_V)(*s <= '9' ? *s - '0' : (*s | 32) - 'a' + 10));
  return negative ? (AP_V)-v : v;
}
template <int AP_W, bool AP_S> struct cell {
  using AP_V = raw_t<AP_W, AP_S>;
  raw_t<room(AP_W), AP_S> kept;
  cell() = default;
  AP_CONSTANT cell(AP_V v) : kept((raw_t<room(AP_W), AP_S>)v) {}
  AP_CONSTANT AP_V get() const { return (AP_V)kept; }
  // Bits above the width do not matter, as get() cuts them off; LLVM takes what is not cut here for a loop's counter.
  AP_INLINE void count(int step) { kept = (raw_t<room(AP_W), AP_S>)(kept + step); }
  // x.V is a number in the tools' headers, which sources use.
  AP_INLINE operator nearest_t<AP_W, AP_S>() const { return (nearest_t<AP_W, AP_S>)get(); }
};

// Width and sign of a C type, as the operators of ap_int see it.
template <class AP_T> struct native { static constexpr bool is = false; };
template <> struct native<bool> { static constexpr bool is = true, AP_S = false; static constexpr int AP_W = 1; };
#define AP_NATIVE(AP_T, SIGNED) \
  template <> struct native<AP_T> { \
    static constexpr bool is = true, AP_S = SIGNED; \
    static constexpr int AP_W = sizeof(AP_T) * 8; \
  };
AP_NATIVE(char, true) AP_NATIVE(signed char, true) AP_NATIVE(unsigned char, false)
AP_NATIVE(short, true) AP_NATIVE(unsigned short, false) AP_NATIVE(int, true)
AP_NATIVE(unsigned, false) AP_NATIVE(long, true) AP_NATIVE(unsigned long, false)
AP_NATIVE(long long, true) AP_NATIVE(unsigned long long, false)
#undef AP_NATIVE
// C's floating-point types, and half.
template <class AP_T> constexpr bool is_real = std::is_floating_point<AP_T>::value || std::is_same<AP_T, half>::value;
template <int AP_N> struct native<signed _BitInt(AP_N)> { static constexpr bool is = true, AP_S = true; static constexpr int AP_W = AP_N; };
template <int AP_N> struct native<unsigned _BitInt(AP_N)> { static constexpr bool is = true, AP_S = false; static constexpr int AP_W = AP_N; };
}  // namespace ap

enum ap_q_mode { AP_RND, AP_RND_ZERO, AP_RND_MIN_INF, AP_RND_INF, AP_RND_CONV, AP_TRN, AP_TRN_ZERO };
enum ap_o_mode { AP_SAT, AP_SAT_ZERO, AP_SAT_SYM, AP_WRAP, AP_WRAP_SM };
template <int AP_W, int AP_I, bool AP_S, ap_q_mode AP_Q = AP_TRN, ap_o_mode AP_O = AP_WRAP> struct ap_fixed_base;
template <int AP_W, bool AP_S> struct ap_range_ref;
template <int AP_W, bool AP_S> struct ap_bit_ref;
namespace ap {
// What may stand beside an ap_int or a part of one: C integers, and a bit.
template <class AP_T> struct operand : native<AP_T> {};
template <int AP_W2, bool AP_S2> struct operand<ap_bit_ref<AP_W2, AP_S2>> {
  static constexpr bool is = true, AP_S = false;
  static constexpr int AP_W = 1;
};
}  // namespace ap

template <int AP_W, bool AP_S> struct ap_int_base {
  static constexpr int width = AP_W;
  static constexpr bool sign_flag = AP_S;
  using AP_V = ap::raw_t<AP_W, AP_S>;
  using AP_U = unsigned _BitInt(AP_W);
  ap::cell<AP_W, AP_S> V;
  AP_CONSTANT AP_V get() const { return V.get(); }

  ap_int_base() = default;
  template <int AP_W2, bool AP_S2> AP_CONSTANT ap_int_base(const ap_int_base<AP_W2, AP_S2>& o) : V((AP_V)o.get()) {}
  template <int AP_W2, bool AP_S2> AP_INLINE ap_int_base(const volatile ap_int_base<AP_W2, AP_S2>& o) : V((AP_V)(ap::raw_t<AP_W2, AP_S2>)o.V.kept) {}
  template <class AP_T, std::enable_if_t<std::is_arithmetic<AP_T>::value || std::is_enum<AP_T>::value || ap::native<AP_T>::is || ap::is_real<AP_T>, int> = 0>
  AP_CONSTANT ap_int_base(AP_T v) : V((AP_V)v) {}
  template <int AP_W2, bool AP_S2> AP_INLINE ap_int_base(const ap_range_ref<AP_W2, AP_S2>& r) : V((AP_V)r.get()) {}
  template <int AP_W2, bool AP_S2> AP_INLINE ap_int_base(const ap_bit_ref<AP_W2, AP_S2>& r) : V((AP_V)(bool)r) {}
  template <int AP_W2, int AP_I2, bool AP_S2, ap_q_mode AP_Q2, ap_o_mode AP_O2>
  AP_INLINE ap_int_base(const ap_fixed_base<AP_W2, AP_I2, AP_S2, AP_Q2, AP_O2>& o) : V((AP_V)o.whole()) {}
  AP_CONSTANT ap_int_base(const char* s, int base = 10) : V((AP_V)ap::read<ap::raw_t<AP_W + 5, AP_S>>(s, base)) {}

  AP_INLINE operator ap::nearest_t<AP_W, AP_S>() const { return (ap::nearest_t<AP_W, AP_S>)get(); }
  AP_INLINE int to_int() const { return (int)get(); }
  AP_INLINE unsigned to_uint() const { return (unsigned)get(); }
  AP_INLINE long to_long() const { return (long)get(); }
  AP_INLINE unsigned long to_ulong() const { return (unsigned long)get(); }
  AP_INLINE long long to_int64() const { return (long long)get(); }
  AP_INLINE unsigned long long to_uint64() const { return (unsigned long long)get(); }
  AP_INLINE double to_double() const { return (double)get(); }
  AP_INLINE float to_float() const { return (float)get(); }
  AP_INLINE bool to_bool() const { return get() != 0; }
  AP_INLINE char to_char() const { return (char)get(); }
  AP_INLINE signed char to_schar() const { return (signed char)get(); }
  AP_INLINE unsigned char to_uchar() const { return (unsigned char)get(); }
  AP_INLINE short to_short() const { return (short)get(); }
  AP_INLINE unsigned short to_ushort() const { return (unsigned short)get(); }
  AP_INLINE half to_half() const { return (half)get(); }
  // Text is for test benches.
  AP_INLINE const char* to_string(signed char = 2, bool = false) const { return ""; }
  AP_INLINE int length() const { return AP_W; }

  AP_INLINE ap_range_ref<AP_W, AP_S> range(int hi, int lo) { return {*this, hi, lo}; }
  AP_INLINE ap_range_ref<AP_W, AP_S> range() { return {*this, AP_W - 1, 0}; }
  AP_INLINE ap_range_ref<AP_W, AP_S> operator()(int hi, int lo) { return {*this, hi, lo}; }
  AP_INLINE ap_int_base<AP_W, false> range(int hi, int lo) const { return slice(hi, lo); }
  AP_INLINE ap_int_base<AP_W, false> operator()(int hi, int lo) const { return slice(hi, lo); }
  // The bits in the other order.
  AP_INLINE ap_int_base<AP_W, false> turned() const {
    AP_U made = 0;
    for (int i = 0; i < AP_W; ++i) made = (AP_U)(made | ((AP_U)test(i) << (unsigned)(AP_W - 1 - i)));
    return made;
  }
  // range(0, 7) has bit 0 first.
  AP_INLINE ap_int_base<AP_W, false> slice(int hi, int lo) const {
    if (__builtin_constant_p(hi < lo) && hi < lo) return turned().slice_up(AP_W - 1 - hi, AP_W - 1 - lo);
    return slice_up(hi, lo);
  }
  AP_INLINE ap_int_base<AP_W, false> slice_up(int hi, int lo) const {
    return (AP_U)(((AP_U)get() >> (unsigned)lo) & (AP_U)((AP_U)~(AP_U)0 >> (unsigned)(AP_W - 1 - hi + lo)));
  }
  AP_INLINE ap_bit_ref<AP_W, AP_S> operator[](int i) { return {*this, i}; }
  AP_INLINE ap_bit_ref<AP_W, AP_S> bit(int i) { return {*this, i}; }
  AP_INLINE bool operator[](int i) const { return test(i); }
  AP_INLINE bool bit(int i) const { return test(i); }
  AP_INLINE bool test(int i) const { return (bool)(((AP_U)get() >> (unsigned)i) & (AP_U)1); }
  AP_INLINE bool get_bit(int i) const { return test(i); }
  AP_INLINE void set(int i) { V = (AP_V)((AP_U)get() | ((AP_U)1 << (unsigned)i)); }
  AP_INLINE void clear(int i) { V = (AP_V)((AP_U)get() & ~((AP_U)1 << (unsigned)i)); }
  AP_INLINE void set_bit(int i, bool v) { v ? set(i) : clear(i); }
  AP_INLINE void set(int i, bool v) { set_bit(i, v); }
  AP_INLINE void invert(int i) { V = (AP_V)((AP_U)get() ^ ((AP_U)1 << (unsigned)i)); }
  AP_INLINE void b_not() { V = (AP_V)~get(); }
  AP_INLINE void clear() { V = 0; }
  AP_INLINE bool is_zero() const { return get() == 0; }
  AP_INLINE bool iszero() const { return get() == 0; }
  AP_INLINE bool sign() const { return AP_S && get() < 0; }
  AP_INLINE bool and_reduce() const { return (AP_U)get() == (AP_U)~(AP_U)0; }
  AP_INLINE bool or_reduce() const { return get() != 0; }
  AP_INLINE bool nor_reduce() const { return get() == 0; }
  AP_INLINE bool nand_reduce() const { return !and_reduce(); }
  AP_INLINE bool xor_reduce() const {
    bool r = false;
    for (int i = 0; i < AP_W; ++i) r ^= test(i);
    return r;
  }
  AP_INLINE bool xnor_reduce() const { return !xor_reduce(); }
  AP_INLINE int countLeadingZeros() const {
    if constexpr (AP_W > 64) {
      const auto top = (unsigned long long)((AP_U)get() >> (AP_W - 64));
      const ap_int_base<AP_W - 64, false> rest = get();
      return top ? __builtin_clzll(top) : 64 + rest.countLeadingZeros();
    } else {
      return get() == 0 ? AP_W : __builtin_clzll((unsigned long long)(AP_U)get()) - (64 - AP_W);
    }
  }
  AP_INLINE ap_int_base& reverse() { V = (AP_V)turned().get(); return *this; }
  AP_INLINE ap_int_base& lrotate(int n) { V = (AP_V)(((AP_U)get() << n) | ((AP_U)get() >> (AP_W - n))); return *this; }
  AP_INLINE ap_int_base& rrotate(int n) { V = (AP_V)(((AP_U)get() >> n) | ((AP_U)get() << (AP_W - n))); return *this; }
  template <int AP_W2, bool AP_S2>
  AP_INLINE ap_int_base<AP_W + AP_W2, false> concat(const ap_int_base<AP_W2, AP_S2>& o) const {
    using AP_R = unsigned _BitInt(AP_W + AP_W2);
    return (AP_R)(((AP_R)(AP_U)get() << AP_W2) | (AP_R)(unsigned _BitInt(AP_W2))o.get());
  }

  AP_INLINE ap_int_base& operator++() { V.count(1); return *this; }
  AP_INLINE ap_int_base& operator--() { V.count(-1); return *this; }
  AP_INLINE ap_int_base operator++(int) { ap_int_base t = *this; ++*this; return t; }
  AP_INLINE ap_int_base operator--(int) { ap_int_base t = *this; --*this; return t; }
  AP_INLINE ap_int_base<AP_W + 1, true> operator-() const {
    return (signed _BitInt(AP_W + 1)) - (signed _BitInt(AP_W + 1))get();
  }
  AP_INLINE ap_int_base operator+() const { return *this; }
  AP_INLINE ap_int_base operator~() const { ap_int_base r; r.V = (AP_V)~get(); return r; }
  AP_INLINE bool operator!() const { return get() == 0; }
#define AP_ASSIGN(OP) \
  template <class AP_T> AP_INLINE ap_int_base& operator OP##=(const AP_T& o) { V.kept = ap_int_base(*this OP o).V.kept; return *this; }
  AP_ASSIGN(+) AP_ASSIGN(-) AP_ASSIGN(*) AP_ASSIGN(/) AP_ASSIGN(%) AP_ASSIGN(&) AP_ASSIGN(|) AP_ASSIGN(^)
  AP_ASSIGN(<<) AP_ASSIGN(>>)
#undef AP_ASSIGN
};

template <int AP_W, bool AP_S> struct ap_range_ref {
  ap_int_base<AP_W, AP_S>& of;
  int hi, lo;
  using AP_U = unsigned _BitInt(AP_W);
  AP_INLINE AP_U get() const { return of.slice(hi, lo).get(); }
  AP_INLINE operator ap_int_base<AP_W, false>() const { return get(); }
  AP_INLINE operator ap::nearest_t<AP_W, false>() const { return (ap::nearest_t<AP_W, false>)get(); }
  AP_INLINE ap_int_base<AP_W, false> operator~() const { return (AP_U)~get(); }
  AP_INLINE auto operator-() const { return -ap_int_base<AP_W, false>(get()); }
  template <class AP_T> AP_INLINE void put(const AP_T& v) {
    if (__builtin_constant_p(hi < lo) && hi < lo) {
      const AP_U bits = (AP_U)((AP_U)v << (unsigned)(AP_W - 1 - lo + hi));
      return ap_range_ref{of, lo, hi}.put_up(ap_int_base<AP_W, false>(bits).turned().get());
    }
    put_up(v);
  }
  template <class AP_T> AP_INLINE void put_up(const AP_T& v) {
    AP_U mask = (AP_U)((AP_U)((AP_U)~(AP_U)0 >> (unsigned)(AP_W - 1 - hi + lo)) << (unsigned)lo);
    of.V = (ap::raw_t<AP_W, AP_S>)(((AP_U)of.get() & (AP_U)~mask) | (((AP_U)v << (unsigned)lo) & mask));
  }
  template <class AP_T, std::enable_if_t<std::is_arithmetic<AP_T>::value || ap::native<AP_T>::is, int> = 0>
  AP_INLINE ap_range_ref& operator=(AP_T v) { put(v); return *this; }
  template <int AP_W2, bool AP_S2> AP_INLINE ap_range_ref& operator=(const ap_int_base<AP_W2, AP_S2>& v) { put(v.get()); return *this; }
  template <int AP_W2, bool AP_S2> AP_INLINE ap_range_ref& operator=(const ap_range_ref<AP_W2, AP_S2>& v) { put(v.get()); return *this; }
  AP_INLINE ap_range_ref& operator=(const ap_range_ref& v) { put(v.get()); return *this; }
  template <int AP_W2, int AP_I2, bool AP_S2, ap_q_mode AP_Q2, ap_o_mode AP_O2>
  AP_INLINE ap_range_ref& operator=(const ap_fixed_base<AP_W2, AP_I2, AP_S2, AP_Q2, AP_O2>& v) { put(v.whole()); return *this; }
  AP_INLINE int to_int() const { return (int)get(); }
  AP_INLINE unsigned to_uint() const { return (unsigned)get(); }
  AP_INLINE unsigned long long to_uint64() const { return (unsigned long long)get(); }
  AP_INLINE unsigned long to_ulong() const { return (unsigned long)get(); }
  AP_INLINE long to_long() const { return (long)get(); }
  AP_INLINE long long to_int64() const { return (long long)get(); }
  AP_INLINE double to_double() const { return (double)get(); }
  AP_INLINE char to_char() const { return (char)get(); }
  AP_INLINE bool to_bool() const { return get() != 0; }
  AP_INLINE bool or_reduce() const { return get() != 0; }
  AP_INLINE bool nor_reduce() const { return get() == 0; }
  AP_INLINE bool and_reduce() const { return get() == (AP_U)((AP_U)~(AP_U)0 >> (unsigned)(AP_W - length())); }
  AP_INLINE bool nand_reduce() const { return !and_reduce(); }
  AP_INLINE bool xor_reduce() const { return ap_int_base<AP_W, false>(get()).xor_reduce(); }
  AP_INLINE bool xnor_reduce() const { return !xor_reduce(); }
  AP_INLINE int length() const { return hi < lo ? lo - hi + 1 : hi - lo + 1; }
};

template <int AP_W, bool AP_S> struct ap_bit_ref {
  ap_int_base<AP_W, AP_S>& of;
  int at;
  AP_INLINE operator bool() const { return of.test(at); }
  AP_INLINE bool get() const { return of.test(at); }
  AP_INLINE bool to_bool() const { return of.test(at); }
  AP_INLINE int length() const { return 1; }
  template <class AP_T> AP_INLINE ap_bit_ref& operator=(const AP_T& v) { of.set_bit(at, (bool)v); return *this; }
  AP_INLINE ap_bit_ref& operator=(const ap_bit_ref& v) { of.set_bit(at, (bool)v); return *this; }
};

template <int AP_W> struct ap_int : ap_int_base<AP_W, true> {
  using ap_int_base<AP_W, true>::ap_int_base;
  ap_int() = default;
  ap_int(const ap_int&) = default;
  ap_int& operator=(const ap_int&) = default;
  AP_INLINE ap_int(const volatile ap_int& o) : ap_int_base<AP_W, true>((ap::raw_t<AP_W, true>)o.V.kept) {}
  AP_INLINE ap_int& operator=(const volatile ap_int& o) { this->V.kept = o.V.kept; return *this; }
  AP_INLINE void operator=(const ap_int& o) volatile { this->V.kept = o.V.kept; }
  AP_INLINE void operator=(const volatile ap_int& o) volatile { this->V.kept = o.V.kept; }
  AP_CONSTANT ap_int(const ap_int_base<AP_W, true>& o) : ap_int_base<AP_W, true>(o) {}
};
template <int AP_W> struct ap_uint : ap_int_base<AP_W, false> {
  using ap_int_base<AP_W, false>::ap_int_base;
  ap_uint() = default;
  ap_uint(const ap_uint&) = default;
  ap_uint& operator=(const ap_uint&) = default;
  AP_INLINE ap_uint(const volatile ap_uint& o) : ap_int_base<AP_W, false>((ap::raw_t<AP_W, false>)o.V.kept) {}
  AP_INLINE ap_uint& operator=(const volatile ap_uint& o) { this->V.kept = o.V.kept; return *this; }
  AP_INLINE void operator=(const ap_uint& o) volatile { this->V.kept = o.V.kept; }
  AP_INLINE void operator=(const volatile ap_uint& o) volatile { this->V.kept = o.V.kept; }
  AP_CONSTANT ap_uint(const ap_int_base<AP_W, false>& o) : ap_int_base<AP_W, false>(o) {}
};

namespace ap {
// The result of OP on operands of W1 and W2 bits.
constexpr int sum_bits(int w1, bool s1, int w2, bool s2) {
  return most(w1 + (s2 && !s1), w2 + (s1 && !s2)) + 1;
}
constexpr int and_bits(int w1, bool s1, int w2, bool s2) {
  return most(w1 + (s2 && !s1), w2 + (s1 && !s2));
}
}  // namespace ap

#define AP_OPERATOR(OP, WIDTH, SIGN) \
  template <int AP_W1, bool AP_S1, int AP_W2, bool AP_S2> \
  AP_INLINE auto operator OP(const ap_int_base<AP_W1, AP_S1>& a, const ap_int_base<AP_W2, AP_S2>& b) { \
    constexpr int w = WIDTH; \
    constexpr bool s = SIGN; \
    using AP_R = ap::raw_t<w, s>; \
    return ap_int_base<w, s>((AP_R)((AP_R)a.get() OP (AP_R)b.get())); \
  }
AP_OPERATOR(+, ap::sum_bits(AP_W1, AP_S1, AP_W2, AP_S2), (AP_S1 || AP_S2))
AP_OPERATOR(-, ap::sum_bits(AP_W1, AP_S1, AP_W2, AP_S2), true)
AP_OPERATOR(*, AP_W1 + AP_W2, (AP_S1 || AP_S2))
AP_OPERATOR(/, AP_W1 + AP_S2, (AP_S1 || AP_S2))
AP_OPERATOR(%, (ap::and_bits(AP_W1, AP_S1, AP_W2, AP_S2)), AP_S1)
AP_OPERATOR(&, ap::and_bits(AP_W1, AP_S1, AP_W2, AP_S2), (AP_S1 || AP_S2))
AP_OPERATOR(|, ap::and_bits(AP_W1, AP_S1, AP_W2, AP_S2), (AP_S1 || AP_S2))
AP_OPERATOR(^, ap::and_bits(AP_W1, AP_S1, AP_W2, AP_S2), (AP_S1 || AP_S2))
#undef AP_OPERATOR
#define AP_COMPARE(OP) \
  template <int AP_W1, bool AP_S1, int AP_W2, bool AP_S2> \
  AP_INLINE bool operator OP(const ap_int_base<AP_W1, AP_S1>& a, const ap_int_base<AP_W2, AP_S2>& b) { \
    using AP_R = ap::raw_t<ap::and_bits(AP_W1, AP_S1, AP_W2, AP_S2), (AP_S1 || AP_S2)>; \
    return (AP_R)a.get() OP (AP_R)b.get(); \
  }
AP_COMPARE(==) AP_COMPARE(!=) AP_COMPARE(<) AP_COMPARE(>) AP_COMPARE(<=) AP_COMPARE(>=)
#undef AP_COMPARE
template <int AP_W1, bool AP_S1, int AP_W2, bool AP_S2>
AP_INLINE ap_int_base<AP_W1, AP_S1> operator<<(const ap_int_base<AP_W1, AP_S1>& a, const ap_int_base<AP_W2, AP_S2>& b) {
  return (ap::raw_t<AP_W1, AP_S1>)(a.get() << (ap::raw_t<AP_W1, AP_S1>)b.get());
}
template <int AP_W1, bool AP_S1, int AP_W2, bool AP_S2>
AP_INLINE ap_int_base<AP_W1, AP_S1> operator>>(const ap_int_base<AP_W1, AP_S1>& a, const ap_int_base<AP_W2, AP_S2>& b) {
  return (ap::raw_t<AP_W1, AP_S1>)(a.get() >> (ap::raw_t<AP_W1, AP_S1>)b.get());
}

// ap_int with a C integer or a part of another ap_int; with a float, the float's arithmetic.
#define AP_MIXED(OP) \
  template <int AP_W, bool AP_S, class AP_T, std::enable_if_t<ap::operand<AP_T>::is, int> = 0> \
  AP_INLINE auto operator OP(const ap_int_base<AP_W, AP_S>& a, AP_T b) { \
    return a OP ap_int_base<ap::operand<AP_T>::AP_W, ap::operand<AP_T>::AP_S>(b); \
  } \
  template <int AP_W, bool AP_S, class AP_T, std::enable_if_t<ap::operand<AP_T>::is, int> = 0> \
  AP_INLINE auto operator OP(AP_T a, const ap_int_base<AP_W, AP_S>& b) { \
    return ap_int_base<ap::operand<AP_T>::AP_W, ap::operand<AP_T>::AP_S>(a) OP b; \
  } \
  template <int AP_W, bool AP_S, int AP_W2, bool AP_S2> \
  AP_INLINE auto operator OP(const ap_int_base<AP_W, AP_S>& a, const ap_range_ref<AP_W2, AP_S2>& b) { \
    return a OP ap_int_base<AP_W2, false>(b); \
  } \
  template <int AP_W, bool AP_S, int AP_W2, bool AP_S2> \
  AP_INLINE auto operator OP(const ap_range_ref<AP_W, AP_S>& a, const ap_int_base<AP_W2, AP_S2>& b) { \
    return ap_int_base<AP_W, false>(a) OP b; \
  } \
  template <int AP_W, bool AP_S, int AP_W2, bool AP_S2> \
  AP_INLINE auto operator OP(const ap_range_ref<AP_W, AP_S>& a, const ap_range_ref<AP_W2, AP_S2>& b) { \
    return ap_int_base<AP_W, false>(a) OP ap_int_base<AP_W2, false>(b); \
  } \
  template <int AP_W, bool AP_S, class AP_T, std::enable_if_t<ap::operand<AP_T>::is, int> = 0> \
  AP_INLINE auto operator OP(const ap_range_ref<AP_W, AP_S>& a, AP_T b) { \
    return ap_int_base<AP_W, false>(a) OP b; \
  } \
  template <int AP_W, bool AP_S, class AP_T, std::enable_if_t<ap::operand<AP_T>::is, int> = 0> \
  AP_INLINE auto operator OP(AP_T a, const ap_range_ref<AP_W, AP_S>& b) { \
    return a OP ap_int_base<AP_W, false>(b); \
  }
AP_MIXED(+) AP_MIXED(-) AP_MIXED(*) AP_MIXED(/) AP_MIXED(%) AP_MIXED(&) AP_MIXED(|) AP_MIXED(^)
AP_MIXED(==) AP_MIXED(!=) AP_MIXED(<) AP_MIXED(>) AP_MIXED(<=) AP_MIXED(>=) AP_MIXED(<<) AP_MIXED(>>)
#undef AP_MIXED
#define AP_FLOAT(OP, AP_A) \
  template <int AP_W, bool AP_S, class AP_T, std::enable_if_t<ap::is_real<AP_T>, int> = 0> \
  AP_INLINE auto operator OP(const AP_A<AP_W, AP_S>& a, AP_T b) { return (AP_T)a.get() OP b; } \
  template <int AP_W, bool AP_S, class AP_T, std::enable_if_t<ap::is_real<AP_T>, int> = 0> \
  AP_INLINE auto operator OP(AP_T a, const AP_A<AP_W, AP_S>& b) { return a OP (AP_T)b.get(); }
#define AP_FLOATS(AP_A) \
  AP_FLOAT(+, AP_A) AP_FLOAT(-, AP_A) AP_FLOAT(*, AP_A) AP_FLOAT(/, AP_A) AP_FLOAT(<, AP_A) AP_FLOAT(>, AP_A) \
  AP_FLOAT(<=, AP_A) AP_FLOAT(>=, AP_A) AP_FLOAT(==, AP_A) AP_FLOAT(!=, AP_A)
AP_FLOATS(ap_int_base) AP_FLOATS(ap_range_ref)
#undef AP_FLOATS
#undef AP_FLOAT

// (a, b): the bits of a above those of b.
template <int AP_W1, bool AP_S1, int AP_W2, bool AP_S2>
AP_INLINE ap_int_base<AP_W1 + AP_W2, false> operator,(const ap_int_base<AP_W1, AP_S1>& a, const ap_int_base<AP_W2, AP_S2>& b) {
  return a.concat(b);
}
#define AP_JOINED(AP_A, AP_B) \
  template <int AP_W1, bool AP_S1, int AP_W2, bool AP_S2> \
  AP_INLINE ap_int_base<AP_W1 + AP_W2, false> operator,(const AP_A<AP_W1, AP_S1>& a, const AP_B<AP_W2, AP_S2>& b) { \
    using AP_R = unsigned _BitInt(AP_W1 + AP_W2); \
    return (AP_R)(((AP_R)(unsigned _BitInt(AP_W1))a.get() << (unsigned)b.length()) | (AP_R)(unsigned _BitInt(AP_W2))b.get()); \
  }
AP_JOINED(ap_range_ref, ap_range_ref) AP_JOINED(ap_range_ref, ap_int_base) AP_JOINED(ap_int_base, ap_range_ref)
AP_JOINED(ap_bit_ref, ap_bit_ref) AP_JOINED(ap_bit_ref, ap_int_base) AP_JOINED(ap_int_base, ap_bit_ref)
AP_JOINED(ap_range_ref, ap_bit_ref) AP_JOINED(ap_bit_ref, ap_range_ref)
#undef AP_JOINED
template <int AP_W, bool AP_S> std::ostream& operator<<(std::ostream& s, const ap_int_base<AP_W, AP_S>&);
#include <ap_fixed.h>
