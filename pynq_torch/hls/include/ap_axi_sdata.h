// AXI4-Stream data with side channels: hls::axis and its older names (UG1399, "AXI4-Stream
// Interfaces with Side-Channels"). A channel of width 0 has no signal; its member is a dummy bit,
// so that code which copies every member still compiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "ap_fixed.h"
#include "ap_int.h"
#include "pynq_torch_beat.h"

// Bits of the template argument EnableSideChannels.
#define AXIS_ENABLE_DATA 0x01
#define AXIS_ENABLE_DEST 0x02
#define AXIS_ENABLE_ID 0x04
#define AXIS_ENABLE_KEEP 0x08
#define AXIS_ENABLE_LAST 0x10
#define AXIS_ENABLE_STRB 0x20
#define AXIS_ENABLE_USER 0x40
#define AXIS_ENABLE_ALL 0x7f
#define AXIS_DISABLE_DATA (AXIS_ENABLE_ALL & ~AXIS_ENABLE_DATA)
#define AXIS_DISABLE_DEST (AXIS_ENABLE_ALL & ~AXIS_ENABLE_DEST)
#define AXIS_DISABLE_ID (AXIS_ENABLE_ALL & ~AXIS_ENABLE_ID)
#define AXIS_DISABLE_KEEP (AXIS_ENABLE_ALL & ~AXIS_ENABLE_KEEP)
#define AXIS_DISABLE_LAST (AXIS_ENABLE_ALL & ~AXIS_ENABLE_LAST)
#define AXIS_DISABLE_STRB (AXIS_ENABLE_ALL & ~AXIS_ENABLE_STRB)
#define AXIS_DISABLE_USER (AXIS_ENABLE_ALL & ~AXIS_ENABLE_USER)
#define AXIS_DISABLE_ALL 0

namespace hls {

namespace axis_detail {
// Bits of a payload, for the width of TKEEP: W for arbitrary-precision types.
template <class Type> struct width { static constexpr int bits = 8 * sizeof(Type); };
template <int Width> struct width<ap_int<Width>> { static constexpr int bits = Width; };
template <int Width> struct width<ap_uint<Width>> { static constexpr int bits = Width; };
template <int Width, int IntBits, ap_q_mode Rounding, ap_o_mode Overflow, int Count>
struct width<ap_fixed<Width, IntBits, Rounding, Overflow, Count>> { static constexpr int bits = Width; };
template <int Width, int IntBits, ap_q_mode Rounding, ap_o_mode Overflow, int Count>
struct width<ap_ufixed<Width, IntBits, Rounding, Overflow, Count>> { static constexpr int bits = Width; };
constexpr int channel(std::size_t bits) { return bits == 0 ? 1 : static_cast<int>(bits); }
}  // namespace axis_detail

template <typename Type, std::size_t WUser = 0, std::size_t WId = 0, std::size_t WDest = 0,
          uint8_t EnableSideChannels = AXIS_ENABLE_ALL, bool StrictEnablement = false>
struct axis {
    using pynq_torch_axis = void;  // marks the type for pynq_torch::BeatOf
    static constexpr int width = axis_detail::width<Type>::bits;
    static constexpr int kWidth = (width + 7) / 8;
    using Type_data = Type;

    Type data;
    ap_uint<kWidth> keep;
    ap_uint<kWidth> strb;
    ap_uint<axis_detail::channel(WUser)> user;
    ap_uint<1> last;
    ap_uint<axis_detail::channel(WId)> id;
    ap_uint<axis_detail::channel(WDest)> dest;

    axis() : data(), keep(-1), strb(-1), user(0), last(0), id(0), dest(0) {}
    axis(const Type& value) : data(value), keep(-1), strb(-1), user(0), last(0), id(0), dest(0) {}

    Type get_data() const { return data; }
    ap_uint<kWidth> get_keep() const { return keep; }
    ap_uint<kWidth> get_strb() const { return strb; }
    ap_uint<axis_detail::channel(WUser)> get_user() const { return user; }
    ap_uint<1> get_last() const { return last; }
    ap_uint<axis_detail::channel(WId)> get_id() const { return id; }
    ap_uint<axis_detail::channel(WDest)> get_dest() const { return dest; }
    void set_data(const Type& value) { data = value; }
    void set_keep(const ap_uint<kWidth>& value) { keep = value; }
    void set_strb(const ap_uint<kWidth>& value) { strb = value; }
    void set_user(const ap_uint<axis_detail::channel(WUser)>& value) { user = value; }
    void set_last(const ap_uint<1>& value) { last = value; }
    void set_id(const ap_uint<axis_detail::channel(WId)>& value) { id = value; }
    void set_dest(const ap_uint<axis_detail::channel(WDest)>& value) { dest = value; }
    void keep_all() { keep = -1; }
    void strb_all() { strb = -1; }
};

template <typename Type, uint8_t EnableSideChannels = AXIS_ENABLE_ALL, std::size_t WUser = 0,
          std::size_t WId = 0, std::size_t WDest = 0, bool StrictEnablement = true>
using axis_data = axis<Type, WUser, WId, WDest, EnableSideChannels, StrictEnablement>;

template <std::size_t WUser, uint8_t EnableSideChannels = AXIS_ENABLE_USER>
using axis_user = axis<ap_uint<1>, WUser, 0, 0, EnableSideChannels, true>;

}  // namespace hls

template <std::size_t WData, std::size_t WUser = 0, std::size_t WId = 0, std::size_t WDest = 0,
          uint8_t EnableSideChannels = AXIS_ENABLE_ALL, bool StrictEnablement = false>
using ap_axis =
    hls::axis<ap_int<WData>, WUser, WId, WDest, EnableSideChannels, StrictEnablement>;

template <std::size_t WData, std::size_t WUser = 0, std::size_t WId = 0, std::size_t WDest = 0,
          uint8_t EnableSideChannels = AXIS_ENABLE_ALL, bool StrictEnablement = false>
using ap_axiu =
    hls::axis<ap_uint<WData>, WUser, WId, WDest, EnableSideChannels, StrictEnablement>;

// Streams between kernels and the QDMA shell: data, keep and last only.
template <std::size_t WData, std::size_t WUser = 0, std::size_t WId = 0, std::size_t WDest = 0>
using qdma_axis = hls::axis<ap_uint<WData>, WUser, WId, WDest,
                            AXIS_ENABLE_DATA | AXIS_ENABLE_KEEP | AXIS_ENABLE_LAST, true>;
