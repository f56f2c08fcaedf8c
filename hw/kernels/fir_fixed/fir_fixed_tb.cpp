// Testbench of fir_fixed: packets shorter and longer than the filter, sums that round and that saturate.
#include "fir_fixed.hpp"

#include <cstdio>

using fir_fixed_config::Beat;
using fir_fixed_config::TAPS;
static_assert(TAPS == 16, "the number of coefficients that the driver writes");

// Steps of 2^-15 that take every value, the ends of the range first.
static int sample(int i) {
    if (i < 2) return i == 0 ? -32768 : 32767;
    return static_cast<short>(40503u * static_cast<unsigned int>(i));
}

static void send(hls::stream<Beat>& stream, int count) {
    for (int i = 0; i < count; ++i) {
        Beat beat;
        beat.data = sample(i);
        beat.keep = i == count - 1 ? 0x1 : 0x3;
        beat.strb = i == count - 1 ? 0x2 : 0x3;
        beat.last = i == count - 1;
        stream.write(beat);
    }
}

static int receive(hls::stream<Beat>& stream, int count, const int coefficients[TAPS]) {
    int errors = 0;
    for (int i = 0; i < count; ++i) {
        long long sum = 0;  // in steps of 2^-30
        for (int k = 0; k < TAPS && k <= i; ++k) sum += static_cast<long long>(coefficients[k]) * sample(i - k);
        long long expected = (sum + (1 << 14)) >> 15;
        if (expected > 32767) expected = 32767;
        if (expected < -32768) expected = -32768;
        const Beat beat = stream.read();
        const int found = static_cast<short>(beat.data.to_uint());
        const bool last = i == count - 1;
        const bool bytes = beat.keep == (last ? 0x1 : 0x3) && beat.strb == (last ? 0x2 : 0x3);
        if (found != expected || beat.last != last || !bytes) {
            if (errors++ == 0) std::printf("  first wrong beat %d: %d, expected %lld\n", i, found, expected);
        }
    }
    return errors;
}

// `kind` 0: small coefficients, 1: large ones, whose sums saturate, 2: a half, whose products end in halves.
static int check(int count, int kind) {
    int coefficients[TAPS];
    for (int k = 0; k < TAPS; ++k) {
        const int sign = k % 2 ? -1 : 1;
        coefficients[k] = kind == 0 ? sign * (100 * k + 7) : kind == 1 ? sample(k) : k == 0 ? 16384 : 0;
    }
    hls::stream<Beat> samples("samples"), filtered("filtered");
    send(samples, count);
    send(samples, 3);
    fir_fixed(samples, filtered, coefficients);
    int errors = samples.size() == 3 ? 0 : 1;  // the next packet stays in the queue
    errors += receive(filtered, count, coefficients);
    fir_fixed(samples, filtered, coefficients);
    errors += receive(filtered, 3, coefficients);
    errors += filtered.empty() && samples.empty() ? 0 : 1;
    std::printf("fir_fixed beats=%-5d coefficients %d %s\n", count, kind, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    int errors = 0;
    for (int kind = 0; kind < 3; ++kind) {
        for (int count : {1, 2, TAPS - 1, TAPS, TAPS + 1, 40000}) errors += check(count, kind);
    }
    return errors == 0 ? 0 : 1;
}
