// Negative log-likelihood of class indices, forward and backward.
//
// | parameter | value | why                                                      |
// |-----------|-------|----------------------------------------------------------|
// | TILE      | 512   | targets on chip at a time, with a weight or gradient each |
//
// Targets are [batch, inner]: `inner` is 1 for a class a sample, the pixels of an image where each has
// its own. A target that is no class counts as ignored: the driver refuses it, the kernel reads nothing.
#pragma once
#include <cstdint>

namespace nll {
constexpr int TILE = 512;

enum Op { FORWARD = 0, BACKWARD = 1 };
enum Reduction { NONE = 0, MEAN = 1, SUM = 2 };  // as torch numbers them

struct Sizes { int batch, classes, inner; };
// In elements. Offsets are int: the 512 MB of the board are 2^27 floats. Loops go on by adding a stride.
struct Strides { int image, klass, inner; };
struct Rule { int reduction, ignore_index, weighted; };

inline bool counts(int64_t target, const Sizes& sizes, const Rule& rule) {
    return target != rule.ignore_index && target >= 0 && target < sizes.classes;
}

// Targets of a tile, and the weights of their classes; -1 for what does not count.
inline void load_targets(const int64_t* target, const float* weight, int klass[TILE], float factor[TILE], int from,
                         int step, int cols, const Sizes& sizes, const Rule& rule) {
    if (step == 1) {
    burst_loop:
        for (int j = 0; j < cols; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            const int64_t t = target[from + j];
            klass[j] = counts(t, sizes, rule) ? static_cast<int>(t) : -1;
        }
    } else {
    single_loop:
        for (int j = 0; j < cols; ++j, from += step) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            const int64_t t = target[from];
            klass[j] = counts(t, sizes, rule) ? static_cast<int>(t) : -1;
        }
    }
weight_loop:
    for (int j = 0; j < cols; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
        factor[j] = klass[j] >= 0 && rule.weighted ? weight[klass[j]] : 1.0f;
    }
}

// Sums are kept in double and rounded once.
inline void forward(const float* source, const int64_t* target, const float* weight, float* result, float* total,
                    const Sizes& sizes, const Strides& from, const Strides& targets, const Rule& rule) {
#pragma HLS INLINE
    double loss = 0, weights = 0;
    int klass[TILE];
    float factor[TILE];
    int image = 0, target_image = 0, written = 0;
image_loop:
    for (int n = 0; n < sizes.batch; ++n, image += from.image, target_image += targets.image) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
        int place = image;
    tile_loop:
        for (int s0 = 0; s0 < sizes.inner; s0 += TILE) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
            const int cols = sizes.inner - s0 < TILE ? sizes.inner - s0 : TILE;
            load_targets(target, weight, klass, factor, target_image + s0 * targets.inner, targets.inner, cols, sizes, rule);
        // The targets choose what is read, and a loss takes eight cycles: single accesses.
        loss_loop:
            for (int j = 0; j < cols; ++j, place += from.inner) {
#pragma HLS PIPELINE II=8
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
                float part = 0.0f;
                if (klass[j] >= 0) {
                    part = -source[place + klass[j] * from.klass] * factor[j];
                    loss += static_cast<double>(part);
                    weights += static_cast<double>(factor[j]);
                }
                if (rule.reduction == NONE) result[written++] = part;
            }
        }
    }
    // As torch has it: nothing is divided by the weights of single losses.
    const float sum = static_cast<float>(loss), divisor = static_cast<float>(weights);
    if (rule.reduction != NONE) result[0] = rule.reduction == MEAN ? sum / divisor : sum;
    total[0] = rule.reduction == NONE ? 0.0f : divisor;
}

// The gradients of a tile's losses, or the one that all share.
inline void load_gradient(const float* source, float gradient[TILE], int from, int step, int cols, bool each,
                          float common) {
    if (!each) {
    common_loop:
        for (int j = 0; j < cols; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            gradient[j] = common;
        }
    } else if (step == 1) {
    burst_loop:
        for (int j = 0; j < cols; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            gradient[j] = source[from + j];
        }
    } else {
    single_loop:
        for (int j = 0; j < cols; ++j, from += step) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
            gradient[j] = source[from];
        }
    }
}

// result: [batch, classes, inner] in order, all of it written.
inline void backward(const float* source, const int64_t* target, const float* weight, float* result,
                     const float* total, const Sizes& sizes, const Strides& from, const Strides& targets,
                     const Rule& rule) {
#pragma HLS INLINE
    int klass[TILE];
    float factor[TILE], gradient[TILE];
    const int sample = sizes.classes * sizes.inner;
    int image = 0, target_image = 0, first = 0;
    float common = 0.0f;
    if (rule.reduction != NONE) common = source[0];
    if (rule.reduction == MEAN) common /= total[0];
image_loop:
    for (int n = 0; n < sizes.batch; ++n, image += from.image, target_image += targets.image, first += sample) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
        int place = image;
    tile_loop:
        for (int s0 = 0; s0 < sizes.inner; s0 += TILE) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=16
            const int cols = sizes.inner - s0 < TILE ? sizes.inner - s0 : TILE;
            load_targets(target, weight, klass, factor, target_image + s0 * targets.inner, targets.inner, cols, sizes, rule);
            load_gradient(source, gradient, place, from.inner, cols, rule.reduction == NONE, common);
            place += cols * from.inner;
        gradient_loop:
            for (int j = 0; j < cols; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
                factor[j] = -factor[j] * gradient[j];
            }
            int row = first + s0;
        class_loop:
            for (int c = 0; c < sizes.classes; ++c, row += sizes.inner) {
#pragma HLS LOOP_TRIPCOUNT min=1 max=1024
            store_loop:
                for (int j = 0; j < cols; ++j) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=TILE
                    result[row + j] = klass[j] == c ? factor[j] : 0.0f;
                }
            }
        }
    }
}
}  // namespace nll
