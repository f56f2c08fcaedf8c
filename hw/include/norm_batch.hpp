// Normalisation of batches: each channel with a mean and a variance that are given.
#pragma once
#include "norm.hpp"

namespace norm {
struct Channels { float mean[CHANNELS], scale[CHANNELS], bias[CHANNELS]; };

// Where a tile of elements begins: sample, channel (of those on chip) and place in the channel.
struct Place { int outer, channel, inner; };

// A way through the elements from there: `at` is the offset of one, `row` of its channel, `image` of its sample.
struct Walk {
    int channel, inner, image, row, at;
    Walk(const Place& place, int first, const Strides& strides)
        : channel(place.channel), inner(place.inner), image(place.outer * strides.outer + first * strides.channel),
          row(image + channel * strides.channel), at(row + inner * strides.inner) {}
    void step(int channels, int size, const Strides& strides) {
        at += strides.inner;
        if (++inner < size) return;
        inner = 0;
        row += strides.channel;
        if (++channel == channels) {
            channel = 0;
            image += strides.outer;
            row = image;
        }
        at = row;
    }
};

// Tile t of the elements: where it begins, and how many it has.
inline Place place_of(int t, int channels, int inner) {
    const int row = t * TILE / inner;
    return {row / channels, row % channels, t * TILE - row * inner};
}
inline int count_of(int t, int elements) { return at_most(elements - t * TILE, TILE); }

// Elements follow each other in memory, over channels and samples too.
inline bool is_dense(int channels, int inner, const Strides& strides) {
    return strides.inner == 1 && strides.channel == inner && strides.outer == channels * inner;
}

// One vector a loop and port: two in one loop would take turns.
static void load_channels(const float* mean, const float* variance, const float* weight, const float* bias, Channels& at,
                          int first, int count, int affine, float eps) {
statistics_loop:
    for (int c = 0; c < count; ++c) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=CHANNELS
        at.mean[c] = mean[first + c];
        at.scale[c] = one_by_deviation(variance[first + c], eps);
        at.bias[c] = 0.0f;
    }
    if (affine & WEIGHT) {
    weight_loop:
        for (int c = 0; c < count; ++c) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=CHANNELS
            at.scale[c] = at.scale[c] * weight[first + c];
        }
    }
    if (affine & BIAS) {
    bias_loop:
        for (int c = 0; c < count; ++c) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=CHANNELS
            at.bias[c] = bias[first + c];
        }
    }
}

static void load_tile(const float* source, float tile[TILE], int t, int first, int channels, int inner, int elements,
                      Strides strides) {
    const int count = count_of(t, elements);
    Walk walk(place_of(t, channels, inner), first, strides);
    if (is_dense(channels, inner, strides)) {
        const int from = walk.at;
    burst_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            tile[i] = source[from + i];
        }
        return;
    }
// Gaps, or another order: single accesses.
load_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        tile[i] = source[walk.at];
        walk.step(channels, inner, strides);
    }
}

static void normalise_tile(const float tile[TILE], float normal[TILE], int t, const Channels& of, int channels,
                           int inner, int elements) {
    const Place place = place_of(t, channels, inner);
    const int count = count_of(t, elements);
    int c = place.channel, along = place.inner;
normalise_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        normal[i] = (tile[i] - of.mean[c]) * of.scale[c] + of.bias[c];
        if (++along == inner) {
            along = 0;
            if (++c == channels) c = 0;
        }
    }
}

static void store_tile(const float normal[TILE], float* result, int t, int first, int channels, int inner, int elements,
                       Strides strides) {
    const int count = count_of(t, elements);
    Walk walk(place_of(t, channels, inner), first, strides);
    if (is_dense(channels, inner, strides)) {
        const int to = walk.at;
    burst_loop:
        for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            result[to + i] = normal[i];
        }
        return;
    }
// Gaps, or another order: single accesses.
store_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        result[walk.at] = normal[i];
        walk.step(channels, inner, strides);
    }
}

// Dataflow over the loop: a tile is loaded while the one before is normalised and a third is stored.
static void batch_tiles(const float* source, float* result, const Channels& of, int first, int channels, int inner,
                        int elements, Strides from, Strides to, int tiles) {
tile_loop:
    for (int t = 0; t < tiles; ++t) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
#pragma HLS DATAFLOW
        float tile[TILE], normal[TILE];
        load_tile(source, tile, t, first, channels, inner, elements, from);
        normalise_tile(tile, normal, t, of, channels, inner, elements);
        store_tile(normal, result, t, first, channels, inner, elements, to);
    }
}

static void batch(const float* source, const float* mean, const float* variance, const float* weight, const float* bias,
                  float* result, int outer, int channels, int inner, int affine, float eps, Strides from, Strides to) {
    Channels on_chip;
channels_loop:
    for (int first = 0; first < channels; first += CHANNELS) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=4
        const int held = at_most(channels - first, CHANNELS);
        const int elements = outer * held * inner;
        load_channels(mean, variance, weight, bias, on_chip, first, held, affine, eps);
        batch_tiles(source, result, on_chip, first, held, inner, elements, from, to, (elements - 1) / TILE + 1);
    }
}
}  // namespace norm
