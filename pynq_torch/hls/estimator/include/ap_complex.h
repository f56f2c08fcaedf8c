// std::complex of the tools' numbers: its parts are references, so that `x.real() = 1` and
// `x.imag().range(7, 0) = 1` write them, as in the library of Vivado HLS and with hls_fft.h.
#pragma once
namespace std {
#define AP_COMPLEX(AP_T, ...) \
  template <__VA_ARGS__> class complex<AP_T> { \
    AP_T re, im; \
   public: \
    typedef AP_T value_type; \
    AP_CONSTANT complex(const AP_T& r = AP_T(), const AP_T& i = AP_T()) : re(r), im(i) {} \
    template <class AP_U> AP_CONSTANT complex(const complex<AP_U>& o) : re(o.real()), im(o.imag()) {} \
    AP_INLINE AP_T& real() { return re; } \
    AP_INLINE AP_T& imag() { return im; } \
    AP_CONSTANT const AP_T& real() const { return re; } \
    AP_CONSTANT const AP_T& imag() const { return im; } \
    AP_INLINE void real(AP_T v) { re = v; } \
    AP_INLINE void imag(AP_T v) { im = v; } \
    AP_INLINE complex& operator=(const AP_T& v) { re = v; im = AP_T(); return *this; } \
    template <class AP_U> AP_INLINE complex& operator=(const complex<AP_U>& o) { re = o.real(); im = o.imag(); return *this; } \
    AP_INLINE complex& operator+=(const AP_T& v) { re += v; return *this; } \
    AP_INLINE complex& operator-=(const AP_T& v) { re -= v; return *this; } \
    AP_INLINE complex& operator*=(const AP_T& v) { re *= v; im *= v; return *this; } \
    AP_INLINE complex& operator/=(const AP_T& v) { re /= v; im /= v; return *this; } \
    template <class AP_U> AP_INLINE complex& operator+=(const complex<AP_U>& o) { re += o.real(); im += o.imag(); return *this; } \
    template <class AP_U> AP_INLINE complex& operator-=(const complex<AP_U>& o) { re -= o.real(); im -= o.imag(); return *this; } \
    template <class AP_U> AP_INLINE complex& operator*=(const complex<AP_U>& o) { \
      const AP_T r = re * o.real() - im * o.imag(); \
      im = re * o.imag() + im * o.real(); \
      re = r; \
      return *this; \
    } \
    template <class AP_U> AP_INLINE complex& operator/=(const complex<AP_U>& o) { \
      const AP_T r = re * o.real() + im * o.imag(), n = std::norm(o); \
      im = (im * o.real() - re * o.imag()) / n; \
      re = r / n; \
      return *this; \
    } \
  };
#define AP_COMMA ,
AP_COMPLEX(ap_int<AP_W>, int AP_W)
AP_COMPLEX(ap_uint<AP_W>, int AP_W)
AP_COMPLEX(ap_fixed<AP_W AP_COMMA AP_I AP_COMMA AP_Q AP_COMMA AP_O AP_COMMA AP_N>, int AP_W, int AP_I, ap_q_mode AP_Q, ap_o_mode AP_O, int AP_N)
AP_COMPLEX(ap_ufixed<AP_W AP_COMMA AP_I AP_COMMA AP_Q AP_COMMA AP_O AP_COMMA AP_N>, int AP_W, int AP_I, ap_q_mode AP_Q, ap_o_mode AP_O, int AP_N)
#undef AP_COMMA
#undef AP_COMPLEX
}  // namespace std
