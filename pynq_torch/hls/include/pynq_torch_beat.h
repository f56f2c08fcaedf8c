// How a C++ value travels as one AXI4-Stream beat: pynq_torch::BeatOf<T>.
//
// Plain values are TDATA only (TLAST low, TKEEP all ones). A struct whose members are named like
// the AXI4-Stream signals (data, keep, strb, user, last, id, dest) carries side channels when the
// port is as wide as its `data` alone, and is plain data when the port is as wide as the struct.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "ap_fixed.h"
#include "ap_int.h"
#include "../../board/engines/stream.hpp"  // by path: kernels have headers of that name too

namespace pynq_torch {

// A value as little-endian bytes. The default is the memory image, which is what HLS puts on
// TDATA for integers, floats, vectors and aggregated structs.
template <class Type> struct BytesOf {
    static constexpr size_t bytes = sizeof(Type);
    static void store(const Type& value, unsigned char* to, size_t room) {
        std::memcpy(to, static_cast<const void*>(&value), (std::min)(room, sizeof(Type)));
    }
    static void load(const unsigned char* from, size_t room, Type& value) {
        std::memcpy(static_cast<void*>(&value), from, (std::min)(room, sizeof(Type)));
    }
};

// Arbitrary-precision integers: W bits, not their storage.
template <int Width, class Int> struct BytesOfBits {
    static constexpr size_t bytes = (Width + 7) / 8;
    static void store(const Int& value, unsigned char* to, size_t room) {
        for (int low = 0; low < Width; low += 64) {
            uint64_t word;
            if constexpr (Width <= 64)
                word = value.to_uint64();
            else
                word = value.range((std::min)(low + 63, Width - 1), low).to_uint64();
            const size_t here = size_t(low) / 8;
            if (here >= room) return;
            // The bits of TDATA beyond W are zero.
            if (Width - low < 64) word &= (uint64_t(1) << (Width - low)) - 1;
            std::memcpy(to + here, &word, (std::min<size_t>)({8, bytes - here, room - here}));
        }
    }
    static void load(const unsigned char* from, size_t room, Int& value) {
        if constexpr (Width <= 64) {
            uint64_t word = 0;
            std::memcpy(&word, from, (std::min)(bytes, room));
            value = word;
        } else {
            for (int low = 0; low < Width; low += 64) {
                uint64_t word = 0;
                const size_t here = size_t(low) / 8;
                if (here < room)
                    std::memcpy(&word, from + here, (std::min<size_t>)({8, bytes - here, room - here}));
                const int high = (std::min)(low + 63, Width - 1);
                if (high - low < 63) word &= (uint64_t(1) << (high - low + 1)) - 1;
                value.range(high, low) = ap_uint<64>(word);
            }
        }
    }
};
template <int Width> struct BytesOf<ap_int<Width>> : BytesOfBits<Width, ap_int<Width>> {};
template <int Width> struct BytesOf<ap_uint<Width>> : BytesOfBits<Width, ap_uint<Width>> {};

template <int Width, class Fixed> struct BytesOfFixed {
    static constexpr size_t bytes = (Width + 7) / 8;
    static void store(const Fixed& value, unsigned char* to, size_t room) {
        ap_uint<Width> raw = value.range(Width - 1, 0);
        BytesOf<ap_uint<Width>>::store(raw, to, room);
    }
    static void load(const unsigned char* from, size_t room, Fixed& value) {
        ap_uint<Width> raw;
        BytesOf<ap_uint<Width>>::load(from, room, raw);
        value.range(Width - 1, 0) = raw;
    }
};
template <int Width, int IntBits, ap_q_mode Rounding, ap_o_mode Overflow, int Count>
struct BytesOf<ap_fixed<Width, IntBits, Rounding, Overflow, Count>> : BytesOfFixed<Width, ap_fixed<Width, IntBits, Rounding, Overflow, Count>> {};
template <int Width, int IntBits, ap_q_mode Rounding, ap_o_mode Overflow, int Count>
struct BytesOf<ap_ufixed<Width, IntBits, Rounding, Overflow, Count>> : BytesOfFixed<Width, ap_ufixed<Width, IntBits, Rounding, Overflow, Count>> {};

namespace detail {
#define PYNQ_TORCH_HAS(member)                                                              \
    template <class Type, class = void> struct has_##member : std::false_type {};              \
    template <class Type>                                                                      \
    struct has_##member<Type, std::void_t<decltype(std::declval<Type&>().member)>>                \
        : std::integral_constant<                                                           \
              bool, !std::is_function<                                                      \
                        std::remove_reference_t<decltype(std::declval<Type&>().member)>>::value> {};
PYNQ_TORCH_HAS(data)
PYNQ_TORCH_HAS(last)
PYNQ_TORCH_HAS(keep)
PYNQ_TORCH_HAS(strb)
PYNQ_TORCH_HAS(user)
PYNQ_TORCH_HAS(id)
PYNQ_TORCH_HAS(dest)
#undef PYNQ_TORCH_HAS

template <class Type>
constexpr bool side_channels() {
    if constexpr (has_data<Type>::value) return has_last<Type>::value || has_keep<Type>::value;
    return false;
}
}  // namespace detail

template <class Type, class = void> struct BeatOf {
    static constexpr size_t min_bytes = BytesOf<Type>::bytes;
    static void pack(const Type& value, size_t room, Beat& beat) {
        BytesOf<Type>::store(value, beat.data, room);
    }
    static void unpack(const Beat& beat, size_t room, Type& value) {
        BytesOf<Type>::load(beat.data, room, value);
    }
};

template <class Type> struct BeatOf<Type, std::enable_if_t<detail::side_channels<Type>()>> {
    using Data = std::remove_reference_t<decltype(std::declval<Type&>().data)>;
    static constexpr size_t min_bytes = BytesOf<Data>::bytes;
    // hls::axis is always side channels; a struct of the user's own only on a port that is
    // narrower than the whole struct.
    static constexpr bool whole(size_t room) { return !T_is_axis() && room >= sizeof(Type); }

    static void pack(const Type& value, size_t room, Beat& beat) {
        if (whole(room)) return BytesOf<Type>::store(value, beat.data, room);
        BytesOf<Data>::store(value.data, beat.data, room);
        if constexpr (detail::has_keep<Type>::value) {
            store_bits(value.keep, beat.keep);
        }
        if constexpr (detail::has_last<Type>::value) beat.last = static_cast<bool>(value.last);
        if constexpr (detail::has_user<Type>::value) beat.user = static_cast<uint64_t>(value.user);
        if constexpr (detail::has_id<Type>::value)
            beat.id = static_cast<uint32_t>(static_cast<uint64_t>(value.id));
        if constexpr (detail::has_dest<Type>::value)
            beat.dest = static_cast<uint32_t>(static_cast<uint64_t>(value.dest));
    }
    static void unpack(const Beat& beat, size_t room, Type& value) {
        if (whole(room)) return BytesOf<Type>::load(beat.data, room, value);
        BytesOf<Data>::load(beat.data, room, value.data);
        if constexpr (detail::has_keep<Type>::value) load_bits(beat.keep, value.keep);
        // TSTRB is not carried apart from TKEEP: every kept byte is a data byte.
        if constexpr (detail::has_strb<Type>::value) load_bits(beat.keep, value.strb);
        if constexpr (detail::has_last<Type>::value) value.last = beat.last;
        if constexpr (detail::has_user<Type>::value) value.user = beat.user;
        if constexpr (detail::has_id<Type>::value) value.id = beat.id;
        if constexpr (detail::has_dest<Type>::value) value.dest = beat.dest;
    }

  private:
    template <class Other, class = void> struct marked : std::false_type {};
    template <class Other>
    struct marked<Other, std::void_t<typename Other::pynq_torch_axis>> : std::true_type {};
    static constexpr bool T_is_axis() { return marked<Type>::value; }

    template <class Bits> static void store_bits(const Bits& bits, uint64_t (&to)[2]) {
        if constexpr (BytesOf<Bits>::bytes > 8) {
            to[0] = to[1] = 0;
            BytesOf<Bits>::store(bits, reinterpret_cast<unsigned char*>(to), sizeof to);
        } else {
            to[0] = static_cast<uint64_t>(bits);
        }
    }
    template <class Bits> static void load_bits(const uint64_t (&from)[2], Bits& bits) {
        if constexpr (BytesOf<Bits>::bytes > 8)
            BytesOf<Bits>::load(reinterpret_cast<const unsigned char*>(from), sizeof from, bits);
        else
            bits = from[0];
    }
};

}  // namespace pynq_torch
