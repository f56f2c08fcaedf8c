// AXI4-Stream data with side channels, for the estimator. UG1399, "AXI4-Stream Interfaces with
// Side-Channels".
#pragma once
#include <ap_fixed.h>

namespace ap {
template <class AP_T> struct payload { static constexpr int bits = 8 * sizeof(AP_T); };
template <int AP_N> struct payload<ap_int<AP_N>> { static constexpr int bits = AP_N; };
template <int AP_N> struct payload<ap_uint<AP_N>> { static constexpr int bits = AP_N; };
template <int AP_W, int AP_I, ap_q_mode AP_Q, ap_o_mode AP_O> struct payload<ap_fixed<AP_W, AP_I, AP_Q, AP_O>> { static constexpr int bits = AP_W; };
template <int AP_W, int AP_I, ap_q_mode AP_Q, ap_o_mode AP_O> struct payload<ap_ufixed<AP_W, AP_I, AP_Q, AP_O>> { static constexpr int bits = AP_W; };
}  // namespace ap

namespace hls {
template <class AP_T, int AP_WUser = 0, int AP_WId = 0, int AP_WDest = 0, unsigned char = 0x7f, bool = false> struct axis {
  static constexpr int width = ap::payload<AP_T>::bits;
  AP_T data;
  ap_uint<(width + 7) / 8> keep, strb;
  ap_uint<AP_WUser ? AP_WUser : 1> user;
  ap_uint<1> last;
  ap_uint<AP_WId ? AP_WId : 1> id;
  ap_uint<AP_WDest ? AP_WDest : 1> dest;
  axis() = default;
  axis(const AP_T& value) : data(value), keep(-1), strb(-1), user(0), last(0), id(0), dest(0) {}
  AP_INLINE AP_T get_data() const { return data; }
  AP_INLINE auto get_keep() const { return keep; }
  AP_INLINE auto get_strb() const { return strb; }
  AP_INLINE auto get_user() const { return user; }
  AP_INLINE auto get_last() const { return last; }
  AP_INLINE auto get_id() const { return id; }
  AP_INLINE auto get_dest() const { return dest; }
  AP_INLINE void set_data(const AP_T& v) { data = v; }
  template <class AP_V> AP_INLINE void set_keep(const AP_V& v) { keep = v; }
  template <class AP_V> AP_INLINE void set_strb(const AP_V& v) { strb = v; }
  template <class AP_V> AP_INLINE void set_user(const AP_V& v) { user = v; }
  template <class AP_V> AP_INLINE void set_last(const AP_V& v) { last = v; }
  template <class AP_V> AP_INLINE void set_id(const AP_V& v) { id = v; }
  template <class AP_V> AP_INLINE void set_dest(const AP_V& v) { dest = v; }
  AP_INLINE void keep_all() { keep = -1; }
  AP_INLINE void strb_all() { strb = -1; }
};
template <class AP_T, unsigned char AP_E = 0x7f, int AP_U = 0, int AP_I = 0, int AP_D = 0, bool = true> using axis_data = axis<AP_T, AP_U, AP_I, AP_D, AP_E>;
}  // namespace hls
template <int AP_W, int AP_U = 0, int AP_I = 0, int AP_D = 0, unsigned char AP_E = 0x7f, bool = false> using ap_axis = hls::axis<ap_int<AP_W>, AP_U, AP_I, AP_D, AP_E>;
template <int AP_W, int AP_U = 0, int AP_I = 0, int AP_D = 0, unsigned char AP_E = 0x7f, bool = false> using ap_axiu = hls::axis<ap_uint<AP_W>, AP_U, AP_I, AP_D, AP_E>;
// A stream of the QDMA engine: a type of its own, whatever the widths that it leaves out.
template <int AP_W, int AP_U = 0, int AP_I = 0, int AP_D = 0> struct qdma_axis {
  ap_uint<AP_W> data;
  ap_uint<(AP_W + 7) / 8> keep;
  ap_uint<1> last;
  AP_INLINE auto get_data() const { return data; }
  AP_INLINE auto get_keep() const { return keep; }
  AP_INLINE auto get_last() const { return last; }
  AP_INLINE void set_data(const ap_uint<AP_W>& v) { data = v; }
  template <class AP_V> AP_INLINE void set_keep(const AP_V& v) { keep = v; }
  template <class AP_V> AP_INLINE void set_last(const AP_V& v) { last = v; }
  AP_INLINE void keep_all() { keep = -1; }
};
