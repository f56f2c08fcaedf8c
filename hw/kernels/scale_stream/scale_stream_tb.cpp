// Testbench of scale_stream: packets of one and of many beats, two queued behind each other.
#include "scale_stream.hpp"

#include <cstdio>
#include <cstring>

using scale_stream_config::Beat;

static unsigned int bits_of(float value) {
    unsigned int bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float sample_at(int i) { return 0.73f * static_cast<float>(i % 311) - 50.0f; }

static void send(hls::stream<Beat>& stream, int count) {
    for (int i = 0; i < count; ++i) {
        Beat beat;
        beat.data = bits_of(sample_at(i));
        beat.keep = i == count - 1 ? 0x3 : 0xf;
        beat.strb = i == count - 1 ? 0x1 : 0xf;  // the last beat has a position byte, which it keeps
        beat.last = i == count - 1;
        stream.write(beat);
    }
}

static int receive(hls::stream<Beat>& stream, int count, float gain, float offset) {
    int errors = 0;
    for (int i = 0; i < count; ++i) {
        const Beat beat = stream.read();
        const volatile float product = gain * sample_at(i);  // volatile: rounded before the sum
        const unsigned int expected = bits_of(product + offset);
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

static int check(int count, float gain, float offset) {
    hls::stream<Beat> samples("samples"), scaled("scaled");
    send(samples, count);
    send(samples, 3);  // the next packet must stay in the queue
    int errors = scale_stream(samples, scaled, gain, offset) == count ? 0 : 1;
    errors += samples.size() == 3 ? 0 : 1;
    errors += receive(scaled, count, gain, offset);
    errors += scale_stream(samples, scaled, 1.0f, 0.0f) == 3 ? 0 : 1;
    errors += receive(scaled, 3, 1.0f, 0.0f);
    errors += scaled.empty() ? 0 : 1;
    std::printf("scale_stream beats=%-5d gain=%g offset=%g %s\n", count, gain, offset, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    int errors = 0;
    for (int count : {1, 2, 1000, 4099}) errors += check(count, 1.1f, -0.3f);
    errors += check(64, 0.0f, 7.5f);
    return errors == 0 ? 0 : 1;
}
