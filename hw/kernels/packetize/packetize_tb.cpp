// Testbench of packetize: packets that divide the run, that do not, one longer than it, and none.
#include "packetize.hpp"

#include <cstdio>

using packetize_config::Beat;

static void send(hls::stream<Beat>& stream, int count) {
    for (int i = 0; i < count; ++i) {
        Beat beat;
        beat.data = 7u * static_cast<unsigned int>(i) + 3u;
        beat.keep = 0xf;
        beat.strb = i % 3 == 0 ? 0x7 : 0xf;
        beat.last = i % 5 == 0;  // must not come through
        stream.write(beat);
    }
}

static int check(int n, int packet) {
    hls::stream<Beat> samples("samples"), packets("packets");
    send(samples, (n > 0 ? n : 0) + 2);
    packetize(samples, packets, n, packet);

    int errors = samples.size() == 2 ? 0 : 1;  // what is not its own stays in the queue
    for (int i = 0; i < n; ++i) {
        const Beat beat = packets.read();
        const unsigned int expected = 7u * static_cast<unsigned int>(i) + 3u;
        const bool last = packet > 0 && (i + 1) % packet == 0;
        if (beat.data.to_uint() != expected || beat.last != last || beat.keep != 0xf ||
            beat.strb != (i % 3 == 0 ? 0x7 : 0xf)) {
            if (errors++ == 0) {
                std::printf("  first wrong beat %d: %u, expected %u\n", i, beat.data.to_uint(), expected);
            }
        }
    }
    errors += packets.empty() ? 0 : 1;
    while (!samples.empty()) samples.read();
    std::printf("packetize n=%-5d packet=%-5d %s\n", n, packet, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    int errors = 0;
    for (int n : {0, 1, 2, 64, 1000, 4099}) {
        for (int packet : {-3, 0, 1, 7, 64, 5000}) errors += check(n, packet);
        errors += check(n, n);
    }
    return errors == 0 ? 0 : 1;
}
