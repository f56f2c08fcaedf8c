// From a tile of sums to c in DDR: bias, scale, ReLU and the kind of number that is stored.
//
// | mode      | what is stored                                                                  |
// |-----------|---------------------------------------------------------------------------------|
// | INT32   0 | sum + bias, int32 (wraps)                                                       |
// | INT8    1 | (sum + bias) * scale, halves to even, cut off at -128 and 127; four in a word   |
// | FLOAT32 2 | sum * scale + bias, two roundings; bias is float32                              |
// | BIAS    4 | added flag: bias is added                                                       |
// | RELU    8 | added flag: negative values become 0                                            |
#pragma once
#include <cstddef>
#include <cstdint>

#include "gemm_memory.hpp"

namespace gemm_core {
enum Mode { INT32 = 0, INT8 = 1, FLOAT32 = 2, KIND = 3, BIAS = 4, RELU = 8 };
constexpr int LANES = 4;  // int8 columns in a word of c

union Word { int32_t bits; float value; };
inline float as_float(int32_t bits) { Word word; word.bits = bits; return word.value; }
inline int32_t as_bits(float value) { Word word; word.value = value; return word.bits; }

// Bias and scale of a tile's columns, where the mode asks for them.
template <typename T, int COLS>
void load_columns(hls::burst_maxi<T> vector, T tile[COLS], Tile at, bool wanted) {
    if (!wanted) return;
    vector.read_request(at.col0, at.cols);
vector_loop:
    for (int j = 0; j < at.cols; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COLS
        tile[j] = vector.read();
    }
}

inline int32_t finish_int32(int32_t sum, int32_t bias, int mode) {
#pragma HLS INLINE
    const uint32_t added = static_cast<uint32_t>(sum) + (mode & BIAS ? static_cast<uint32_t>(bias) : 0u);
    const int32_t value = static_cast<int32_t>(added);
    return mode & RELU && value < 0 ? 0 : value;
}

// NaN and -0 pass through ReLU, as in torch.
template <typename Multiplier>
int32_t finish_float32(int32_t sum, int32_t bias, float scale, int mode) {
#pragma HLS INLINE
    const float product = Multiplier::times(static_cast<float>(sum), scale);
    const float value = mode & BIAS ? Multiplier::plus(product, as_float(bias)) : product;
    return as_bits(mode & RELU && value < 0.0f ? 0.0f : value);
}

// Cutting off before rounding gives the same, since the bounds are whole numbers, and leaves values
// small enough for the oldest way to round: beside 1.5 * 2^23 a float has no bits for a fraction, and
// its last eight bits hold the whole number. NaN becomes 0, as in torch.
template <typename Multiplier>
uint32_t finish_int8(int32_t sum, int32_t bias, float scale, int mode) {
#pragma HLS INLINE
    const float lowest = mode & RELU ? 0.0f : -128.0f, highest = 127.0f;
    const float value = Multiplier::times(static_cast<float>(finish_int32(sum, bias, mode & BIAS)), scale);
    const float cut = value < lowest ? lowest : value > highest ? highest : value;
    return value == value ? as_bits(Multiplier::plus(cut, 12582912.0f)) & 0xff : 0;
}
}  // namespace gemm_core
