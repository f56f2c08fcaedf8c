// A gemm that does, where a row of `a` asks for it, what a kernel must not do; see device_helpers.py.
#pragma once
#include <cstdint>
#include <ctime>

namespace moody {

// Processor time, because a kernel that sleeps would be waited for at its start.
inline void burn(double seconds) {
    for (std::clock_t end = std::clock() + std::clock_t(seconds * CLOCKS_PER_SEC); std::clock() < end;) {
    }
}

// `pace_ns`: what a multiplication takes in a row whose mood is PACED.
inline void product(const int8_t *a, const int8_t *b, int32_t *c, int m, int n, int k, int lda, int ldb, int ldc,
                    const int32_t *bias, const float *scale, int mode, double pace_ns) {
    for (int i = 0; i < m; ++i) {
        const int8_t *row = a + i * lda;
        switch (k > 1 && row[1] == -77 ? row[0] : 0) {
        case 101:  // CRASH
            __builtin_trap();
        case 102:  // HANG
            for (volatile int x = 0;; x = x + 1) {
            }
        case 103:  // DAWDLE
            burn(0.7);
            break;
        case 104:  // STRAY
            c[1 << 24] = 7;
            break;
        case 105:  // PACED
            burn(1e-9 * pace_ns * n * k);
            break;
        default:
            break;
        }
        for (int j = 0; j < n; ++j) {
            int32_t sum = 0;
            for (int t = 0; t < k; ++t) sum += row[t] * b[t * ldb + j];
            if ((mode & 3) == 2) {
                volatile float value = float(sum) * scale[j];  // two roundings
                if (mode & 4) value = value + reinterpret_cast<const float *>(bias)[j];
                if (mode & 8 && value < 0) value = 0;
                reinterpret_cast<float *>(c)[i * ldc + j] = value;
            } else {
                if (mode & 4) sum += bias[j];
                c[i * ldc + j] = mode & 8 && sum < 0 ? 0 : sum;
            }
        }
    }
}

}  // namespace moody
