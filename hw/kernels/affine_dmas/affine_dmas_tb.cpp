// Testbench of affine_dmas: packets of one and of many beats, a gain for each; the rest stays in the queues.
#include "affine_dmas.hpp"

#include "../../include/affine_tb.hpp"

using affine::Beat;

static float gain_of(int i) { return 0.25f * static_cast<float>(i % 17) - 2.0f; }

static void send(hls::stream<Beat>& samples, hls::stream<Beat>& gains, int count) {
    for (int i = 0; i < count; ++i) {
        Beat beat;
        beat.keep = beat.strb = 0x1;  // those of the samples count
        beat.data = affine::bits_of(gain_of(i));
        beat.last = i % 3 == 0;  // does not end the packet
        gains.write(beat);
        beat.keep = 0xf;
        beat.strb = i % 3 == 0 ? 0x7 : 0xf;
        beat.data = affine::bits_of(affine_tb::sample(i));
        beat.last = i == count - 1;
        samples.write(beat);
    }
}

static int check(int count) {
    hls::stream<Beat> samples("samples"), gains("gains"), results("results");
    send(samples, gains, count);
    send(samples, gains, 3);
    affine_dmas(samples, gains, results, -0.3f);
    int errors = samples.size() == 3 && gains.size() == 3 ? 0 : 1;
    for (int i = 0; i < count; ++i) {
        const Beat beat = results.read();
        const float expected = affine_tb::golden(i, gain_of(i), -0.3f);
        const bool bytes = beat.keep == 0xf && beat.strb == (i % 3 == 0 ? 0x7 : 0xf);
        if (affine::value_of(beat) != expected || beat.last != (i == count - 1) || !bytes) {
            errors = affine_tb::wrong(errors, i, affine::value_of(beat), expected);
        }
    }
    errors += results.empty() ? 0 : 1;
    while (!samples.empty()) samples.read();
    while (!gains.empty()) gains.read();
    return affine_tb::verdict("affine_dmas", count, errors);
}

int main() {
    int errors = 0;
    for (int count : {1, 2, 1000, 4099}) errors += check(count);
    return errors == 0 ? 0 : 1;
}
