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

// Write the valid part of a tile of c, as words. Answers to write bursts are waited for AHEAD rows later.
template <typename S, typename Multiplier>
void store_words(const int32_t tile[S::TILE_M][S::TILE_N], const int32_t bias[S::TILE_N], const float scale[S::TILE_N],
                 hls::burst_maxi<int32_t> c, Tile at, int ldc, int mode) {
    size_t start = static_cast<size_t>(at.row0) * ldc + at.col0;
    int i = 0, j = 0;
word_loop:
    for (int t = 0; t < at.rows * at.cols; ++t) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=65536
        if (j == 0) c.write_request(start, at.cols);
        if ((mode & KIND) == FLOAT32) {
            c.write(finish_float32<Multiplier>(tile[i][j], bias[j], scale[j], mode));
        } else {
            c.write(finish_int32(tile[i][j], bias[j], mode));
        }
        if (++j == at.cols) {
            j = 0;
            start += ldc;
            if (++i > AHEAD) c.write_response();
        }
    }
}

// As int8, LANES to a word: a loop of its own, in which the banks of a word's columns are known. The last
// word of a row is filled up with zeros.
template <typename S, typename Multiplier>
void store_bytes(const int32_t tile[S::TILE_M][S::TILE_N], const int32_t bias[S::TILE_N], const float scale[S::TILE_N],
                 hls::burst_maxi<int32_t> c, Tile at, int ldc, int mode) {
    static_assert(S::TILE_N % LANES == 0, "a tile of int8 starts with a whole word");
    const int words = (at.cols + LANES - 1) / LANES, pitch = ldc / LANES;
    size_t start = static_cast<size_t>(at.row0) * pitch + at.col0 / LANES;
    int i = 0, j = 0;
byte_loop:
    for (int t = 0; t < at.rows * words; ++t) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=16384
        if (j == 0) c.write_request(start, words);
        uint32_t word = 0;
    lane_loop:
        for (int lane = 0; lane < LANES; ++lane) {
#pragma HLS UNROLL
            const int column = j * LANES + lane;
            const uint32_t byte = finish_int8<Multiplier>(tile[i][column], bias[column], scale[column], mode);
            if (column < at.cols) word |= byte << 8 * lane;
        }
        c.write(static_cast<int32_t>(word));
        if (++j == words) {
            j = 0;
            start += pitch;
            if (++i > AHEAD) c.write_response();
        }
    }
}

template <typename S, typename Multiplier>
void store(const int32_t tile[S::TILE_M][S::TILE_N], const int32_t bias[S::TILE_N], const float scale[S::TILE_N],
           hls::burst_maxi<int32_t> c, Tile at, int ldc, int mode) {
    if ((mode & KIND) == INT8) store_bytes<S, Multiplier>(tile, bias, scale, c, at, ldc, mode);
    else store_words<S, Multiplier>(tile, bias, scale, c, at, ldc, mode);
store_answers:
    for (int left = at_most(at.rows, AHEAD); left > 0; --left) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=AHEAD
        c.write_response();
    }
}
}  // namespace gemm_core
