// Bench of tone_curve: every value of a pixel, at strengths between nothing and all.
#include <cstdio>

#include "tone_curve.hpp"

int main() {
    int wrong = 0;
    for (int strength : {0, 1, 77, 128, 255, 256}) {
        hls::stream<tone::Beat> pixels, toned;
        for (int i = 0; i < tone::BEATS; i++) {
            tone::Beat beat;
            for (int lane = 0; lane < tone::LANES; lane++) {
                beat.data.range(8 * lane + 7, 8 * lane) = (tone::LANES * i + lane) & 255;
            }
            beat.keep = -1;
            beat.strb = -1;
            beat.last = i == tone::BEATS - 1;
            pixels.write(beat);
        }
        tone_curve(pixels, toned, strength);
        for (int i = 0; i < tone::BEATS; i++) {
            const tone::Beat beat = toned.read();
            for (int lane = 0; lane < tone::LANES; lane++) {
                const int x = (tone::LANES * i + lane) & 255;
                const int want = (x * (256 - strength) + tone::CURVE[x] * strength) >> 8;
                wrong += beat.data.range(8 * lane + 7, 8 * lane).to_int() != want;
            }
            wrong += beat.last != (i == tone::BEATS - 1);
        }
        wrong += !toned.empty();
    }
    std::printf("tone_curve: %s\n", wrong ? "FAIL" : "PASS");
    return wrong != 0;
}
