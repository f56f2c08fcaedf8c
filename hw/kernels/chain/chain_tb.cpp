// Testbench of chain: gains of both signs, limits that let through all, some and none, sums that wrap.
#include "chain.hpp"

#include <climits>
#include <cstdio>

using chain_config::Beat;

static int sample(int i) { return static_cast<int>(2654435761u * static_cast<unsigned int>(i + 1)) >> 12; }

static int check(int n, int gain, int limit) {
    const int count = n > 0 ? n : 0;
    hls::stream<Beat> samples("samples"), sums("sums");
    for (int i = 0; i < count + 2; ++i) {
        Beat beat;
        beat.data = sample(i);
        beat.keep = beat.strb = 0xf;
        beat.last = i % 5 == 0;  // does not count
        samples.write(beat);
    }
    chain(samples, sums, gain, limit, n);

    int errors = samples.size() == 2 ? 0 : 1;  // what is not its own stays in the queue
    errors += sums.size() == static_cast<unsigned>(count) ? 0 : 1;
    long long total = 0;
    for (int i = 0; i < count && !sums.empty(); ++i) {
        const int value = static_cast<int>(static_cast<unsigned int>(static_cast<long long>(gain) * sample(i)));
        if (value >= limit) total += value;
        const Beat beat = sums.read();
        const unsigned int expected = static_cast<unsigned int>(total);
        if (beat.data.to_uint() != expected || beat.last != (i == n - 1) || beat.keep != 0xf || beat.strb != 0xf) {
            if (errors++ == 0) {
                std::printf("  first wrong beat %d: %u, expected %u\n", i, beat.data.to_uint(), expected);
            }
        }
    }
    while (!samples.empty()) samples.read();
    std::printf("chain n=%-5d gain=%-11d limit=%-11d %s\n", n, gain, limit, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    int errors = 0;
    for (int n : {-1, 0, 1, 2, 1000, 4099}) {
        errors += check(n, 3, 0) + check(n, -7, 1000) + check(n, 1, INT_MIN) + check(n, 1, INT_MAX);
        errors += check(n, 123456789, -5) + check(n, 3, 3 * sample(0));  // a sample at the limit counts
    }
    return errors == 0 ? 0 : 1;
}
