// Testbench of fir: packets shorter and longer than the filter, and nothing of one left for the next.
#include "fir.hpp"

#include <cstdio>

using fir_config::Beat;
using fir_config::TAPS;
static_assert(TAPS == 16, "the number of coefficients that the driver writes");

// Large enough for the sums to wrap round.
static unsigned int sample(int i) { return 2654435761u * static_cast<unsigned int>(i + 1); }

static void send(hls::stream<Beat>& stream, int count) {
    for (int i = 0; i < count; ++i) {
        Beat beat;
        beat.data = sample(i);
        beat.keep = i == count - 1 ? 0x3 : 0xf;
        beat.strb = i == count - 1 ? 0x1 : 0xf;  // the last beat has a position byte, which it keeps
        beat.last = i == count - 1;
        stream.write(beat);
    }
}

static int receive(hls::stream<Beat>& stream, int count, const int coefficients[TAPS]) {
    int errors = 0;
    for (int i = 0; i < count; ++i) {
        unsigned int expected = 0;
        for (int k = 0; k < TAPS && k <= i; ++k) expected += static_cast<unsigned int>(coefficients[k]) * sample(i - k);
        const Beat beat = stream.read();
        const bool last = i == count - 1;
        const bool bytes = beat.keep == (last ? 0x3 : 0xf) && beat.strb == (last ? 0x1 : 0xf);
        if (beat.data.to_uint() != expected || beat.last != last || !bytes) {
            if (errors++ == 0) {
                std::printf("  first wrong beat %d: %08x, expected %08x\n", i, beat.data.to_uint(), expected);
            }
        }
    }
    return errors;
}

static int check(int count) {
    int coefficients[TAPS];
    for (int k = 0; k < TAPS; ++k) coefficients[k] = (k % 2 ? -1 : 1) * (1 << (2 * k % 31)) + k;
    hls::stream<Beat> samples("samples"), filtered("filtered");
    send(samples, count);
    send(samples, 3);
    fir(samples, filtered, coefficients);
    int errors = samples.size() == 3 ? 0 : 1;  // the next packet stays in the queue
    errors += receive(filtered, count, coefficients);
    fir(samples, filtered, coefficients);
    errors += receive(filtered, 3, coefficients);
    errors += filtered.empty() && samples.empty() ? 0 : 1;
    std::printf("fir beats=%-5d %s\n", count, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    int errors = 0;
    for (int count : {1, 2, TAPS - 1, TAPS, TAPS + 1, 1000}) errors += check(count);
    return errors == 0 ? 0 : 1;
}
