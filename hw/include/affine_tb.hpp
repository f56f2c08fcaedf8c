// What the testbenches of the affine kernels share: samples, what is right, and the verdict.
#pragma once
#include <cstdio>

namespace affine_tb {

inline float sample(int i) { return 0.73f * static_cast<float>(i % 311) - 50.0f; }

// volatile: the product is rounded before the sum, whatever the compiler would like to fuse.
inline float golden(int i, float gain, float offset) {
    const volatile float product = gain * sample(i);
    return product + offset;
}

inline int wrong(int errors, int i, float found, float expected) {
    if (errors == 0) std::printf("  first wrong index %d: %g, expected %g\n", i, found, expected);
    return errors + 1;
}

inline int verdict(const char* name, int n, int errors) {
    std::printf("%s n=%-5d %s\n", name, n, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

}  // namespace affine_tb
