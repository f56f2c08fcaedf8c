// Normalisation in float32: what batches (with statistics that are given) and layers share.
//
// | parameter | value | why                                                                 |
// |-----------|-------|---------------------------------------------------------------------|
// | TILE      | 1024  | elements under way in each stage, 4 KB                              |
// | CHANNELS  | 1024  | of a batch, with mean, scale and bias on chip: 12 KB                |
// | ROW       | 4096  | elements of a layer's row on chip, 16 KB; longer ones are read again |
// | LANES     | 8     | sums in turn, since an addition in double takes 8 cycles            |
//
// y = (x - mean) * scale * weight + bias. A difference from the mean is rounded once, also where the mean
// is large, so that y is within 7 roundings of (x - mean) * scale * weight and one of y of the exact value.
#pragma once
#include <cmath>
#include <cstdint>

namespace norm {
constexpr int TILE = 1024;
constexpr int CHANNELS = 1024;
constexpr int ROW = 4096;
constexpr int LANES = 8;
static_assert(ROW % LANES == 0, "every part of a row begins with the first lane");

enum Op { BATCH = 0, LAYER = 1 };
enum Affine { WEIGHT = 1, BIAS = 2 };

// In elements. Offsets are int: the 512 MB of the board are 2^27 floats. Loops go on by adding a stride.
struct Strides { int outer, channel, inner; };

inline int at_most(int value, int limit) { return value < limit ? value : limit; }

inline float one_by_deviation(float variance, float eps) { return 1.0f / std::sqrt(variance + eps); }
}  // namespace norm
