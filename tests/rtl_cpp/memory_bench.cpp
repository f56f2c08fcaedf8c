// Traffic on the memory's end of AXI4 ports. Prints "name value" lines; a wrong answer is an error.
//
//     memory_bench random PRESET WIDTH SEED STALLS PAUSE TRANSFERS [FOLDER]
//         FOLDER gets the bytes of the trace and of the counters
//     memory_bench single PRESET CLOCK_HZ BURSTS [IDLE [BEATS]]   one outstanding read of 16 beats or
//         so many, of 8 bytes, and so many cycles between two
//     memory_bench rate PRESET CLOCK_HZ WIDTH HP DIR... [STALLS]   streaming ports, DIR r, w or b (both)
//     memory_bench stray ADDRESS BEATS r|w
//     memory_bench reset SEED
//     memory_bench dma PRESET DMAS HPS [PACKET]            streams of 8 bytes, the DMAs spread over HPs;
//         in packets of so many beats, each sent when the one before has arrived
//     memory_bench preset PRESET                           its numbers
//     memory_bench break port|lite|stream RULE             breaks it, prints the error: "" when none
//     memory_bench ring CASE                               an end of a stream's ring, see ring_cases.hpp
//     memory_bench unit CASE                               registers and streams, see unit_cases.hpp
//     memory_bench wake 0|1 [FILL EDGE]                    a design that its reset sets, or does not;
//         those that wake with FILL fail at that edge of the clock
//     memory_bench again PRESET [STALLS]                   the same bursts, in several runs
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <memory>
#include <string>

#include "checker_cases.hpp"
#include "manager.hpp"
#include "ring_cases.hpp"
#include "stream_flow.hpp"
#include "unit_cases.hpp"

using namespace bench;

namespace {

const char* const kPrefix = "m_axi_gmem";

struct Rig {
    Board board;
    FakeModel model;
    Memory memory;
    std::vector<std::unique_ptr<AxiPort>> ports;
    uint64_t cycle = 0;

    Rig(const char* name, double clock_hz, double stalls = 0, uint64_t seed = 0)
        : memory(board.map, *preset(name), clock_hz, stalls, seed) {}
    void add(const std::string& prefix, uint32_t width, int hp, bool reads = true,
             bool writes = true) {
        model.add_axi(prefix, width, reads, writes);
        const uint16_t index = uint16_t(ports.size());
        ports.push_back(std::make_unique<AxiPort>(model.pins(), prefix, memory, hp, index,
                                                  "unit_0." + prefix, board.counters, board.trace));
    }
    void step(const std::function<void()>& drive, const std::function<void()>& sample) {
        memory.tick(cycle);
        for (auto& p : ports) p->drive(cycle);
        drive();
        for (auto& p : ports) p->sample(cycle);
        sample();
        ++cycle;
    }
};

Request any_transfer(std::mt19937_64& random, uint32_t bus) {
    auto up_to = [&](uint64_t n) { return random() % n; };
    Request t;
    t.write = up_to(2) != 0;
    t.id = uint32_t(up_to(4));
    t.burst = up_to(3) == 0 ? (up_to(2) ? kWrap : kFixed) : kIncr;
    t.number_bytes = bus;
    while (t.number_bytes > 1 && up_to(3) == 0) t.number_bytes /= 2;
    const uint64_t room = Board::kEnd - Board::kBegin;
    if (t.burst == kWrap) {
        t.length = 2u << up_to(4);
        t.start = Board::kBegin + up_to(room / t.number_bytes) * t.number_bytes;
    } else if (t.burst == kFixed) {
        t.length = 1 + uint32_t(up_to(16));
        t.start = Board::kBegin + up_to(room);
    } else {
        t.start = Board::kBegin + up_to(room);
        const uint64_t page_end = (t.start | 4095) + 1;
        const uint64_t most = (page_end - t.aligned()) / t.number_bytes;
        t.length = uint32_t(1 + up_to(std::min<uint64_t>(up_to(4) ? 16 : 256, most)));
    }
    if (t.write) {
        const int style = int(up_to(3));  // all strobes, some, none in places
        for (uint32_t n = 1; n <= t.length; ++n) {
            const size_t bytes = size_t(t.last_byte(n) - t.first_byte(n) + 1);
            t.data.emplace_back(bytes);
            t.strobes.emplace_back(bytes, true);
            for (size_t i = 0; i < bytes; ++i) {
                t.data.back()[i] = uint8_t(random());
                if (style == 1) t.strobes.back()[i] = random() & 1;
                if (style == 2 && n % 3 == 0) t.strobes.back()[i] = false;
            }
        }
    }
    return t;
}

// Random traffic until `transfers` are through; with `resets`, the board resets in the middle.
void traffic(Rig& rig, uint32_t width, uint64_t seed, double pause, uint64_t transfers) {
    std::mt19937_64 random(seed);
    Manager manager(rig.model, kPrefix, width, seed + 1);
    manager.pause = pause;
    std::vector<uint8_t> memory(Board::kEnd - Board::kBegin);
    for (uint8_t& byte : memory) byte = uint8_t(random());
    std::memcpy(rig.board.map.at(Board::kBegin), memory.data(), memory.size());
    uint64_t asked = 0, moved = rig.ports[0]->last_handshake;
    const Pins pins = rig.model.pins();
    auto high = [&](std::string pin) { return pins.find(std::string(kPrefix) + "_" + pin).high(); };
    const uint64_t limit = rig.cycle + 4000 * transfers + 100'000;
    while (asked < transfers || manager.outstanding()) {
        if (asked < transfers && manager.outstanding() < 12) {
            const Request t = any_transfer(random, width / 8);
            if (!manager.conflicts(t)) {
                manager.ask(t);
                ++asked;
            }
        }
        rig.step([&] { manager.drive(); }, [&] { manager.sample(memory, Board::kBegin); });
        for (const char* channel : {"AR", "R", "AW", "W", "B"})
            if (high(std::string(channel) + "VALID") && high(std::string(channel) + "READY"))
                moved = rig.cycle - 1;
        expect_equal("last_handshake", rig.ports[0]->last_handshake, moved);
        if (manager.owed() && !rig.ports[0]->pending())
            throw std::runtime_error("nothing is pending, and an answer is owed");
        if (rig.cycle > limit)
            throw std::runtime_error("no end: " + std::to_string(manager.outstanding()) +
                                     " transfers hang");
    }
    if (std::memcmp(memory.data(), rig.board.map.at(Board::kBegin), memory.size()) != 0)
        throw std::runtime_error("memory differs from what was written");
    if (rig.ports[0]->pending() || rig.memory.pending())
        throw std::runtime_error("something is pending after the end");
    const PortCounters& c = *rig.board.counters->port(0);
    expect_equal("read.transactions", c.read.transactions, manager.reads);
    expect_equal("read.beats", c.read.beats, manager.beats_read);
    expect_equal("read.bytes", c.read.bytes, manager.bytes_read);
    expect_equal("write.transactions", c.write.transactions, manager.writes);
    expect_equal("write.beats", c.write.beats, manager.beats_written);
    expect_equal("write.bytes", c.write.bytes, manager.bytes_written);
    expect_equal("records", rig.board.trace->written(), transfers);
    uint64_t latency[2] = {0, 0};
    for (uint64_t i = 0; i < std::min<uint64_t>(transfers, Board::kRecords); ++i) {
        const TransactionRecord& r = rig.board.trace->at(i);
        if (!(r.begin < r.end && r.first <= r.end))
            throw std::runtime_error("a record ends before it begins");
        latency[r.kind] += r.end - r.begin;
    }
    expect_equal("read.latency_sum", c.read.latency_sum, latency[0]);
    expect_equal("write.latency_sum", c.write.latency_sum, latency[1]);
}

void save(const std::string& path, const void* bytes, size_t n) {
    std::FILE* file = std::fopen(path.c_str(), "wb");
    if (!file || std::fwrite(bytes, 1, n, file) != n || std::fclose(file) != 0)
        throw std::runtime_error("cannot write " + path);
}

int run_random(int n, char** a) {
    Rig rig(a[0], 100e6, std::atof(a[3]), std::strtoull(a[2], nullptr, 10));
    const uint32_t width = uint32_t(std::atoi(a[1]));
    rig.add(kPrefix, width, 0);
    traffic(rig, width, std::strtoull(a[2], nullptr, 10), std::atof(a[4]),
            std::strtoull(a[5], nullptr, 10));
    rig.board.counters->cycle = rig.cycle;
    if (n == 7) {
        save(std::string(a[6]) + "/trace", rig.board.trace, TraceRing::bytes(Board::kRecords));
        save(std::string(a[6]) + "/counters", rig.board.counters,
             CounterTable::bytes(Board::kPorts));
    }
    std::printf("cycles %llu\n", static_cast<unsigned long long>(rig.cycle));
    return 0;
}

int run_single(int n, char** a) {
    Rig rig(a[0], std::atof(a[1]));
    rig.add(kPrefix, 64, 0, true, false);
    const Pins pins = rig.model.pins();
    const Pin valid = pins.find("m_axi_gmem_ARVALID"), ready = pins.find("m_axi_gmem_ARREADY");
    const Pin addr = pins.find("m_axi_gmem_ARADDR"), last = pins.find("m_axi_gmem_RLAST");
    const uint64_t beats = n > 4 ? std::strtoull(a[4], nullptr, 10) : 16;
    pins.find("m_axi_gmem_ARLEN").set(beats - 1), pins.find("m_axi_gmem_ARSIZE").set(3),
        pins.find("m_axi_gmem_ARBURST").set(kIncr);
    pins.find("m_axi_gmem_RREADY").set(1);
    const Pin rvalid = pins.find("m_axi_gmem_RVALID");
    const long bursts = std::atol(a[2]), idle = n > 3 ? std::atol(a[3]) : 0;
    uint64_t worst = 0, begin = 0;
    long done = 0;
    valid.set(1), addr.set(Board::kBegin);
    while (done < bursts) {
        for (long i = valid.get() && done ? idle : 0; i > 0; --i) {
            valid.set(0);
            rig.step([] {}, [] {});
            valid.set(1);
        }
        const bool asking = valid.get();
        rig.step([] {},
                 [&] {
                     if (asking && ready.get()) {
                         begin = rig.cycle;
                         valid.set(0);
                     }
                     if (rvalid.get() && last.get()) {
                         ++done;
                         worst = std::max(worst, rig.cycle + 1 - begin);
                         valid.set(1), addr.set(Board::kBegin + uint64_t(done) % 512 * 128);
                     }
                 });
    }
    std::printf("cycles %llu\nmean %.4f\nworst %llu\n", static_cast<unsigned long long>(rig.cycle),
                double(rig.cycle) / double(bursts), static_cast<unsigned long long>(worst));
    return 0;
}

// Traffic in runs that begin at other times; each takes what the first one took.
int run_again(int n, char** a) {
    Rig rig(a[0], 100e6, n > 1 ? std::atof(a[1]) : 0);
    rig.add(kPrefix, 64, 0), rig.add("m_axi_other", 64, 1);
    for (int run = 0; run < 4; ++run) {
        Manager one(rig.model, kPrefix, 64, 1), two(rig.model, "m_axi_other", 64, 2);
        std::vector<uint8_t> memory(Board::kEnd - Board::kBegin);
        for (int i = 0; i < 1'000 * run + 7 * run * run; ++i) rig.step([] {}, [] {});
        const uint64_t begin = rig.cycle;
        rig.memory.begin_run(rig.cycle);
        for (auto& port : rig.ports) port->begin_run(1);
        for (int i = 0; i < 300; ++i) {
            Request t;
            t.number_bytes = 8, t.length = 1 + uint32_t(i % 16), t.start = Board::kBegin + 128u * unsigned(i);
            one.ask(t);
            if (i < 290) two.ask(t);  // what was served last is not what is served first
            t.start += 0x10000, t.write = true;
            t.data.assign(t.length, std::vector<uint8_t>(8, uint8_t(i)));
            t.strobes.assign(t.length, std::vector<bool>(8, true));
            one.ask(t);
        }
        while (one.outstanding() || two.outstanding()) {
            rig.step([&] { one.drive(), two.drive(); }, [&] {
                one.sample(memory, Board::kBegin), two.sample(memory, Board::kBegin);
            });
            if (rig.cycle == begin + 100) rig.memory.begin_run(rig.cycle);  // nothing, while it works
        }
        std::printf("run%d %llu\n", run, (unsigned long long)(rig.cycle - begin));
    }
    return 0;
}

// Ports that always have bursts of 16 beats (at most 4 KB) outstanding; prints bytes a cycle of each.
int run_rate(int n, char** a) {
    Rig rig(a[0], std::atof(a[1]), n % 2 ? 0 : std::atof(a[n - 1]));
    const uint32_t width = uint32_t(std::atoi(a[2]));
    std::vector<std::unique_ptr<Manager>> managers;
    std::vector<uint8_t> memory(Board::kEnd - Board::kBegin);
    std::vector<std::string> directions;
    for (int i = 3; i + 1 < n; i += 2) {
        const std::string prefix = "m_axi_p" + std::to_string(managers.size());
        rig.add(prefix, width, std::atoi(a[i]));
        directions.push_back(a[i + 1]);
        managers.push_back(std::make_unique<Manager>(rig.model, prefix, width, 7));
    }
    for (size_t i = 0; i < managers.size(); ++i)  // more signals may have moved the list
        managers[i] = std::make_unique<Manager>(rig.model, "m_axi_p" + std::to_string(i), width, 7);
    const uint64_t cycles = 40'000;
    uint64_t next = 0;
    for (uint64_t c = 0; c < cycles; ++c) {
        for (size_t i = 0; i < managers.size(); ++i) {
            const std::string& d = directions[i];
            for (const bool write : {false, true}) {
                if (d == (write ? "r" : "w") || managers[i]->outstanding(write) >= 12) continue;
                Request t;
                t.write = write;
                t.number_bytes = width / 8;
                t.length = 16;
                t.start =
                    Board::kBegin + (next++ * 16 * t.number_bytes) % (Board::kEnd - Board::kBegin);
                t.id = t.write;
                if (t.write) {
                    t.data.assign(16, std::vector<uint8_t>(t.number_bytes, 0));
                    t.strobes.assign(16, std::vector<bool>(t.number_bytes, true));
                }
                managers[i]->ask(t);
            }
        }
        rig.step(
            [&] {
                for (auto& m : managers) m->drive();
            },
            [&] {
                for (auto& m : managers) m->sample(memory, Board::kBegin);
            });
    }
    double total = 0;
    for (size_t i = 0; i < managers.size(); ++i) {
        const PortCounters& p = *rig.board.counters->port(i);
        const double read = double(p.read.bytes) / double(cycles),
                     write = double(p.write.bytes) / double(cycles);
        std::printf("read%zu %.4f\nwrite%zu %.4f\n", i, read, i, write);
        total += read + write;
    }
    std::printf("total %.4f\n", total);
    return 0;
}

int run_stray(char** a) {
    Rig rig("pynq-z2", 100e6);
    rig.add(kPrefix, 64, 1);
    const Pins pins = rig.model.pins();
    const bool write = a[2][0] == 'w';
    const std::string ax = std::string(kPrefix) + (write ? "_AW" : "_AR");
    const uint32_t beats = uint32_t(std::atoi(a[1]));
    pins.find(ax + "VALID").set(1), pins.find(ax + "ADDR").set(std::strtoull(a[0], nullptr, 0));
    pins.find(ax + "LEN").set(beats - 1), pins.find(ax + "SIZE").set(3),
        pins.find(ax + "BURST").set(kIncr);
    pins.find("m_axi_gmem_WVALID").set(write), pins.find("m_axi_gmem_WSTRB").set(0xff);
    pins.find("m_axi_gmem_WDATA").set(0x1122334455667788);
    pins.find("m_axi_gmem_RREADY").set(1), pins.find("m_axi_gmem_BREADY").set(1);
    uint32_t sent = 0, got = 0;
    uint64_t resp = 9;
    pins.find("m_axi_gmem_WLAST").set(beats == 1);
    for (int i = 0; i < 200 && resp == 9; ++i) {
        const bool asked = pins.find(ax + "VALID").get();
        rig.step([] {},
                 [&] {
                     if (asked && pins.find(ax + "READY").get()) pins.find(ax + "VALID").set(0);
                     if (pins.find("m_axi_gmem_WVALID").get() &&
                         pins.find("m_axi_gmem_WREADY").get()) {
                         ++sent;
                         pins.find("m_axi_gmem_WVALID").set(sent < beats);
                         pins.find("m_axi_gmem_WLAST").set(sent + 1 == beats);
                     }
                     if (pins.find("m_axi_gmem_BVALID").get())
                         resp = pins.find("m_axi_gmem_BRESP").get();
                     if (pins.find("m_axi_gmem_RVALID").get() && ++got == beats)
                         resp = pins.find("m_axi_gmem_RRESP").get();
                 });
    }
    const AccessFault& f = rig.memory.fault;
    std::printf("resp %llu\nkind %u\naddress %llu\nwrite %u\ncycle %llu\nerrors %llu\n",
                (unsigned long long)resp, f.kind, (unsigned long long)f.address, f.write,
                (unsigned long long)f.cycle,
                (unsigned long long)(rig.board.counters->port(0)->read.errors +
                                     rig.board.counters->port(0)->write.errors));
    // Nothing but the buffer was written.
    uint64_t changed = 0;
    for (uint64_t i = 0; i < Board::kDdr; ++i) changed += *rig.board.map.at(i) != 0;
    std::printf("changed %llu\n", (unsigned long long)changed);
    return 0;
}

// Half of some traffic, a reset, and then traffic as if nothing had been.
int run_reset(char** a) {
    const uint64_t seed = std::strtoull(a[0], nullptr, 10);
    Rig rig("pynq-z2", 100e6, 0.1, seed);
    rig.add(kPrefix, 128, 0);
    std::mt19937_64 random(seed);
    {
        Manager manager(rig.model, kPrefix, 128, seed);
        std::vector<uint8_t> memory(Board::kEnd - Board::kBegin);
        for (int i = 0; i < 12; ++i) {
            const Request t = any_transfer(random, 16);
            if (!manager.conflicts(t)) manager.ask(t);
        }
        const uint64_t stop = rig.cycle + random() % 200;
        while (rig.cycle < stop)
            rig.step([&] { manager.drive(); }, [&] { manager.sample(memory, Board::kBegin); });
        rig.ports[0]->cut(rig.cycle);
        uint64_t cut = 0;
        for (uint64_t i = 0; i < rig.board.trace->written(); ++i)
            cut += rig.board.trace->at(i).flags & 1;
        std::printf("cut %llu\nowed %zu\n", static_cast<unsigned long long>(cut), manager.owed());
    }
    for (const char* name : {"ARVALID", "AWVALID", "WVALID"})
        rig.model.pins().find(std::string(kPrefix) + "_" + name).set(0);
    if (seed % 2) rig.ports[0]->reset();  // a board that does not clock the design while it resets
    for (uint64_t n = seed % 2; n < 16; ++n, ++rig.cycle) {
        rig.memory.tick(rig.cycle);
        rig.ports[0]->drive(rig.cycle);
        rig.ports[0]->sample_reset(rig.cycle, n);
    }
    if (rig.ports[0]->pending() || rig.memory.pending())
        throw std::runtime_error("traffic survived the reset");
    std::memset(static_cast<void*>(rig.board.counters->port(0)), 0, sizeof(PortCounters));
    rig.board.trace = new (rig.board.trace) TraceRing(Board::kRecords);
    traffic(rig, 128, seed + 5, 0.2, 200);
    return 0;
}

int run_dma(int n, char** a) {
    Rig rig(a[0], 100e6);
    const int dmas = std::atoi(a[1]), hps = std::atoi(a[2]);
    std::vector<std::unique_ptr<DmaFlow>> in, out;
    std::vector<std::unique_ptr<StreamMeter>> meters;
    for (int i = 0; i < dmas; ++i) {
        in.push_back(std::make_unique<DmaFlow>(rig.memory, i % hps, true));
        out.push_back(std::make_unique<DmaFlow>(rig.memory, i % hps, false));
        meters.push_back(
            std::make_unique<StreamMeter>(rig.board.counters, rig.board.trace, uint16_t(i), true));
    }
    const uint64_t beats = 10'000, packet = n > 3 ? std::strtoull(a[3], nullptr, 10) : beats;
    uint64_t digest = 0;
    std::vector<uint64_t> left(size_t(dmas), beats);
    uint64_t first = 0, busy = uint64_t(dmas);
    for (; busy && rig.cycle < 1'000'000; ++rig.cycle) {
        rig.memory.tick(rig.cycle);
        busy = 0;
        for (size_t i = 0; i < left.size(); ++i) {
            const uint64_t inside = (left[i] - 1) % packet + 1;
            const bool begun = inside < packet || packet == beats || !out[i]->pending();
            in[i]->offer(rig.cycle, left[i] && begun ? inside * 8 : 0);
            const bool valid = left[i] && in[i]->can_take(8), ready = out[i]->can_give(8);
            const bool last = left[i] && inside == 1;
            meters[i]->sample(rig.cycle, valid, ready, 8, last, left[i], 0);
            if (valid && ready) {
                if (!first) first = rig.cycle;
                in[i]->take(8);
                out[i]->give(rig.cycle, 8, last);
                --left[i];
                digest = digest * 31 + rig.cycle;
            }
            busy += left[i] != 0 || in[i]->pending() || out[i]->pending();
        }
    }
    std::printf("cycles %llu\nfirst %llu\nrate %.4f\nrecords %llu\nbytes %llu\ndigest %llu\n",
                (unsigned long long)rig.cycle, (unsigned long long)first,
                double(beats) * 8 / double(rig.cycle),
                (unsigned long long)rig.board.trace->written(),
                (unsigned long long)rig.board.trace->at(0).bytes, (unsigned long long)digest);
    return 0;
}

int run_preset(char** a) {
    const Preset& p = *preset(a[0]);
    std::printf("hp_bytes_per_cycle %u\nburst_beats %u\nfifo_words %u\nport_cycles %u\n"
                "read_latency_ps %u\nwrite_latency_ps %u\n",
                p.hp_bytes, p.hp_burst_words, p.fifo_words, p.port_cycles, p.read_latency_ps,
                p.write_latency_ps);
    std::printf("ddr_bytes_per_second %.1f\nrefresh_every_ps %u\nrefresh_ps %u\n",
                p.ddr_bytes_per_second, p.refresh_every_ps, p.refresh_ps);
    return 0;
}

int run_break(char** a) {
    const std::string where = a[0];
    try {
        if (where == "port") broken_port(a[1]);
        if (where == "lite") broken_lite(a[1]);
        if (where == "stream") broken_stream(a[1]);
    } catch (const ProtocolError& error) { std::printf("%s\n", error.what()); }
    return 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string what = argc > 1 ? argv[1] : "";
    try {
        if (what == "random" && (argc == 8 || argc == 9)) return run_random(argc - 2, argv + 2);
        if (what == "single" && (argc >= 5 && argc <= 7)) return run_single(argc - 2, argv + 2);
        if (what == "rate" && argc >= 7) return run_rate(argc - 2, argv + 2);
        if (what == "stray" && argc == 5) return run_stray(argv + 2);
        if (what == "reset" && argc == 3) return run_reset(argv + 2);
        if (what == "dma" && (argc == 5 || argc == 6)) return run_dma(argc - 2, argv + 2);
        if (what == "preset" && argc == 3) return run_preset(argv + 2);
        if (what == "break" && argc == 4) return run_break(argv + 2);
        if (what == "ring" && argc == 3) return ring_cases().at(argv[2])(), 0;
        if (what == "unit" && argc == 3) return unit_cases().at(argv[2])(), 0;
        if (what == "again" && (argc == 3 || argc == 4)) return run_again(argc - 2, argv + 2);
        if (what == "wake" && (argc == 3 || argc == 5)) {
            tiny_resets = argv[2][0] == '1';
            if (argc == 5) tiny_fails_with = std::strtoull(argv[3], nullptr, 10);
            if (argc == 5) tiny_fails_after = std::strtoull(argv[4], nullptr, 10);
            std::printf("%s\n", check_reset(tiny_api()).c_str());
            return 0;
        }
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    std::fprintf(stderr, "see the comment on top of this file\n");
    return 2;
}
