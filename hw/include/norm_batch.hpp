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

static void load_channels(const float* mean, const float* variance, const float* weight, const float* bias, Channels& at,
                          int first, int count, int affine, float eps) {
channel_loop:
    for (int c = 0; c < count; ++c) {
#pragma HLS PIPELINE II=1
        const float factor = one_by_deviation(variance[first + c], eps);
        at.mean[c] = mean[first + c];
        at.scale[c] = affine & WEIGHT ? factor * weight[first + c] : factor;
        at.bias[c] = affine & BIAS ? bias[first + c] : 0.0f;
    }
}

static void load_tile(const float* source, float tile[TILE], Place place, int first, int channels, int inner,
                      int count, Strides strides) {
    Walk walk(place, first, strides);
load_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
        tile[i] = source[walk.at];
        walk.step(channels, inner, strides);
    }
}

static void normalise_tile(const float tile[TILE], float normal[TILE], Place place, const Channels& of, int channels,
                           int inner, int count) {
    int c = place.channel, along = place.inner;
normalise_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
        normal[i] = (tile[i] - of.mean[c]) * of.scale[c] + of.bias[c];
        if (++along == inner) {
            along = 0;
            if (++c == channels) c = 0;
        }
    }
}

static void store_tile(const float normal[TILE], float* result, Place place, int first, int channels, int inner,
                       int count, Strides strides) {
    Walk walk(place, first, strides);
store_loop:
    for (int i = 0; i < count; ++i) {
#pragma HLS PIPELINE II=1
        result[walk.at] = normal[i];
        walk.step(channels, inner, strides);
    }
}

// Dataflow over the loop: a tile is loaded while the one before is normalised and a third is stored.
static void batch(const float* source, const float* mean, const float* variance, const float* weight, const float* bias,
                  float* result, int outer, int channels, int inner, int affine, float eps, Strides from, Strides to) {
    Channels on_chip;
channels_loop:
    for (int first = 0; first < channels; first += CHANNELS) {
        const int held = at_most(channels - first, CHANNELS);
        load_channels(mean, variance, weight, bias, on_chip, first, held, affine, eps);
        const int elements = outer * held * inner;
        Place place = {0, 0, 0};
    tile_loop:
        for (int done = 0; done < elements; done += TILE) {
#pragma HLS DATAFLOW
            const int count = at_most(elements - done, TILE);
            float tile[TILE], normal[TILE];
            load_tile(source, tile, place, first, held, inner, count, from);
            normalise_tile(tile, normal, place, on_chip, held, inner, count);
            store_tile(normal, result, place, first, held, inner, count, to);
            const int row = (done + TILE) / inner;
            place = {row / held, row % held, (done + TILE) % inner};
        }
    }
}
}  // namespace norm
