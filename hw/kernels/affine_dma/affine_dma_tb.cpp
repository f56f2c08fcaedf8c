// Testbench of affine_dma: packets of one and of many beats; what belongs to the next one stays in the queue.
#include "affine_dma.hpp"

#include "../../include/affine_tb.hpp"

using affine::Beat;

static void send(hls::stream<Beat>& samples, int count) {
    for (int i = 0; i < count; ++i) {
        Beat beat;
        beat.data = affine::bits_of(affine_tb::sample(i));
        beat.keep = 0xf;
        beat.strb = i % 3 == 0 ? 0x7 : 0xf;
        beat.last = i == count - 1;
        samples.write(beat);
    }
}

static int check(int count) {
    hls::stream<Beat> samples("samples"), results("results");
    send(samples, count);
    send(samples, 3);
    affine_dma(samples, results, 1.1f, -0.3f);
    int errors = samples.size() == 3 ? 0 : 1;
    for (int i = 0; i < count; ++i) {
        const Beat beat = results.read();
        const float expected = affine_tb::golden(i, 1.1f, -0.3f);
        const bool bytes = beat.keep == 0xf && beat.strb == (i % 3 == 0 ? 0x7 : 0xf);
        if (affine::value_of(beat) != expected || beat.last != (i == count - 1) || !bytes) {
            errors = affine_tb::wrong(errors, i, affine::value_of(beat), expected);
        }
    }
    errors += results.empty() ? 0 : 1;
    affine_dma(samples, results, 1.0f, 0.0f);
    errors += results.size() == 3 && samples.empty() ? 0 : 1;
    while (!results.empty()) results.read();
    return affine_tb::verdict("affine_dma", count, errors);
}

int main() {
    int errors = 0;
    for (int count : {1, 2, 1000, 4099}) errors += check(count);
    return errors == 0 ? 0 : 1;
}
