// Bench of scale_stream: packets of many lengths with stalls on both sides, the next packet already
// waiting, registers, auto-restart, a reset in the middle, a beat a cycle.
#include "Vscale_stream.h"

#include <cstring>
#include <deque>

#include "axi_lite.hpp"

static constexpr unsigned AP_START = 1, AP_DONE = 2, AP_IDLE = 4, AP_READY = 8, AUTO_RESTART = 0x80;

struct Beat {
    uint32_t data;
    uint8_t keep, strb, last;
};

static uint32_t bits_of(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

struct ScaleStream : Bench<Vscale_stream> {
    Random random{5};
    std::deque<Beat> in, out;
    double stalls = 0;
    bool moved = false;
    Lite lite{lite_of(*top), random, [this] { tick(); }};

    ScaleStream() {
        clock = &top->ap_clk;
        restart();
    }
    void restart() {
        in.clear();
        out.clear();
        top->samples_TVALID = top->scaled_TREADY = 0;
        reset(top->ap_rst_n);
    }
    void tick() {
        if (!top->samples_TVALID && !in.empty() && !random.chance(stalls)) {
            top->samples_TVALID = 1;
            top->samples_TDATA = in.front().data;
            top->samples_TKEEP = in.front().keep;
            top->samples_TSTRB = in.front().strb;
            top->samples_TLAST = in.front().last;
        }
        top->scaled_TREADY = !random.chance(stalls);
        low();
        lite.settled();
        const bool taken = top->samples_TVALID && top->samples_TREADY;
        moved = top->scaled_TVALID && top->scaled_TREADY;
        if (moved)
            out.push_back({top->scaled_TDATA, top->scaled_TKEEP, top->scaled_TSTRB, top->scaled_TLAST});
        high();
        if (taken) {
            in.pop_front();
            top->samples_TVALID = 0;
        }
    }
    void send(int count) {
        for (int i = 0; i < count; ++i) {
            const bool last = i == count - 1;
            in.push_back({bits_of(float(int(random.bits())) / 65536.0f),
                          uint8_t(last ? random.below(16) : 15), uint8_t(random.below(16)), uint8_t(last)});
        }
    }
    uint64_t wait(uint64_t bound) {
        const uint64_t from = cycle;
        while (!(lite.read(0) & AP_DONE))
            CHECK(cycle - from < bound, "not done after %llu cycles", (unsigned long long)bound);
        return cycle - from;
    }
    void expect(const std::deque<Beat>& sent, size_t count, float gain, float offset) {
        CHECK(out.size() == count, "%zu beats came out, expected %zu", out.size(), count);
        for (size_t i = 0; i < count; ++i) {
            float x;
            std::memcpy(&x, &sent[i].data, 4);
            const volatile float product = gain * x;  // volatile: rounded before the sum
            const uint32_t wanted = bits_of(product + offset);
            CHECK(out[i].data == wanted, "beat %zu is %08x, expected %08x", i, out[i].data, wanted);
            CHECK(out[i].keep == sent[i].keep && out[i].strb == sent[i].strb && out[i].last == sent[i].last,
                  "the side signals of beat %zu changed", i);
        }
        out.clear();
    }
};

static void run(ScaleStream& bench, int count, float gain, float offset, double stalls) {
    bench.stalls = bench.lite.stalls = stalls;
    bench.send(count);
    const std::deque<Beat> sent = bench.in;
    bench.send(3);  // the next packet stays in the queue
    for (int i = 0; i < 20; ++i) bench.tick();
    CHECK(bench.out.empty() && bench.in.size() == size_t(count) + 3, "beats were taken before the start");
    bench.lite.write(0x18, bits_of(gain));
    bench.lite.write(0x20, bits_of(offset));
    bench.lite.write(0, AP_START);
    bench.wait(200 + 20 * count);
    CHECK(bench.lite.read(0x10) == uint32_t(count), "%u beats counted of %d", bench.lite.read(0x10), count);
    CHECK(bench.in.size() == 3, "the next packet was begun");
    bench.expect(sent, count, gain, offset);
    const std::deque<Beat> next = bench.in;
    bench.lite.write(0, AP_START);
    bench.wait(500);
    bench.expect(next, 3, gain, offset);
    CHECK(bench.lite.read(0x10) == 3 && bench.lite.read(0) == AP_IDLE, "the packet behind");
}

int main() {
    ScaleStream bench;
    CHECK(bench.lite.read(0) == AP_IDLE, "AP_CTRL after reset");
    for (int count : {1, 2, 3, 9, 10, 11, 100, 4099}) {
        for (double stalls : {0.0, 0.1, 0.6}) run(bench, count, 1.1f, -0.3f, stalls);
    }
    run(bench, 64, 0.0f, 7.5f, 0.3);
    run(bench, 64, 1e-30f, 1e-42f, 0.3);

    // Arguments count as they are at the start, however long the first beat takes to come.
    bench.stalls = bench.lite.stalls = 0;
    bench.lite.write(0x18, bits_of(2.0f));
    bench.lite.write(0x20, bits_of(1.0f));
    bench.lite.write(0, AP_START);
    bench.lite.write(0x18, bits_of(9.0f));
    CHECK(bench.lite.read(0) == AP_START, "AP_CTRL while it waits");
    bench.send(5);
    const std::deque<Beat> five = bench.in;
    bench.wait(100);
    bench.expect(five, 5, 2.0f, 1.0f);

    // Auto-restart: packet after packet, the interrupt after each.
    bench.lite.write(4, 1);
    bench.lite.write(8, 1);
    bench.lite.write(0, AP_START | AUTO_RESTART);
    for (int packet = 1; packet < 5; ++packet) {
        bench.send(10 * packet);
        const std::deque<Beat> sent = bench.in;
        for (int i = 0; i < 300 && !bench.top->__SYM__interrupt; ++i) bench.tick();
        CHECK(bench.lite.read(12) == 1, "no interrupt after packet %d", packet);
        bench.lite.write(12, 1);
        bench.expect(sent, 10 * packet, 9.0f, 1.0f);
        CHECK(bench.lite.read(0x10) == uint32_t(10 * packet), "beats of packet %d", packet);
    }
    CHECK(bench.lite.read(0) == (AP_START | AP_DONE | AUTO_RESTART), "AP_CTRL in auto-restart");

    // A reset in the middle of a packet.
    bench.send(100);
    for (int i = 0; i < 30; ++i) bench.tick();
    CHECK(bench.out.size() > 5, "nothing moves");
    bench.restart();
    CHECK(bench.lite.read(0) == AP_IDLE && bench.lite.read(0x18) == 0, "a reset leaves something behind");
    run(bench, 50, 3.0f, 1.0f, 0.2);

    // Speed: a beat a cycle.
    const int count = 100000;
    bench.stalls = bench.lite.stalls = 0;
    bench.send(count);
    bench.lite.write(0, AP_START);
    const uint64_t cycles = bench.wait(2 * count);
    CHECK(cycles < count + 40, "%llu cycles for %d beats", (unsigned long long)cycles, count);
    std::printf("scale_stream beats=%d: %llu cycles\nPASS\n", count, (unsigned long long)cycles);
    return 0;
}
