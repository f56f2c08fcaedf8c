// AXI4-Stream data with side channels, for the estimator. UG1399, "AXI4-Stream Interfaces with
// Side-Channels".
#pragma once
#include <ap_fixed.h>

namespace ap {
template <class T> struct payload { static constexpr int bits = 8 * sizeof(T); };
template <int N> struct payload<ap_int<N>> { static constexpr int bits = N; };
template <int N> struct payload<ap_uint<N>> { static constexpr int bits = N; };
template <int W, int I, ap_q_mode Q, ap_o_mode O> struct payload<ap_fixed<W, I, Q, O>> { static constexpr int bits = W; };
template <int W, int I, ap_q_mode Q, ap_o_mode O> struct payload<ap_ufixed<W, I, Q, O>> { static constexpr int bits = W; };
}  // namespace ap

namespace hls {
template <class T, int WUser = 0, int WId = 0, int WDest = 0, unsigned char = 0x7f, bool = false> struct axis {
  static constexpr int width = ap::payload<T>::bits;
  T data;
  ap_uint<(width + 7) / 8> keep, strb;
  ap_uint<WUser ? WUser : 1> user;
  ap_uint<1> last;
  ap_uint<WId ? WId : 1> id;
  ap_uint<WDest ? WDest : 1> dest;
  axis() = default;
  axis(const T& value) : data(value), keep(-1), strb(-1), user(0), last(0), id(0), dest(0) {}
  AP_INLINE T get_data() const { return data; }
  AP_INLINE auto get_keep() const { return keep; }
  AP_INLINE auto get_strb() const { return strb; }
  AP_INLINE auto get_user() const { return user; }
  AP_INLINE auto get_last() const { return last; }
  AP_INLINE auto get_id() const { return id; }
  AP_INLINE auto get_dest() const { return dest; }
  AP_INLINE void set_data(const T& v) { data = v; }
  template <class V> AP_INLINE void set_keep(const V& v) { keep = v; }
  template <class V> AP_INLINE void set_strb(const V& v) { strb = v; }
  template <class V> AP_INLINE void set_user(const V& v) { user = v; }
  template <class V> AP_INLINE void set_last(const V& v) { last = v; }
  template <class V> AP_INLINE void set_id(const V& v) { id = v; }
  template <class V> AP_INLINE void set_dest(const V& v) { dest = v; }
  AP_INLINE void keep_all() { keep = -1; }
  AP_INLINE void strb_all() { strb = -1; }
};
template <class T, unsigned char E = 0x7f, int U = 0, int I = 0, int D = 0, bool = true> using axis_data = axis<T, U, I, D, E>;
}  // namespace hls
template <int W, int U = 0, int I = 0, int D = 0, unsigned char E = 0x7f, bool = false> using ap_axis = hls::axis<ap_int<W>, U, I, D, E>;
template <int W, int U = 0, int I = 0, int D = 0, unsigned char E = 0x7f, bool = false> using ap_axiu = hls::axis<ap_uint<W>, U, I, D, E>;
template <int W, int U = 0, int I = 0, int D = 0> using qdma_axis = hls::axis<ap_uint<W>, U, I, D>;
