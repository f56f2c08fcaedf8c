// A tile of sums through the epilogue to memory: one burst a row, in words or in bytes.
#pragma once
#include "gemm_epilogue.hpp"

namespace gemm_core {
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
