// affine: y = gain * x + offset, the function behind every interface of the lesson on them.
#pragma once

namespace affine {

// The product is rounded before the sum, as torch does it.
inline float element(float x, float gain, float offset) { return gain * x + offset; }

}  // namespace affine
