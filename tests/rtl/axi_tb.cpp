// Bench of axi_read and axi_write: ranges of any address and length, in queues of commands, with
// stalls on every channel and on the stream's side; guards around what is written; words a cycle.
#include "Vaxi_read.h"
#include "Vaxi_write.h"

#include "axi_memory.hpp"

static constexpr uint64_t BASE = 0x140000000;  // above 32 bits
static constexpr uint32_t SPACE = 1 << 18;
static constexpr unsigned NBYTES = DATA_WIDTH / 8;

struct Range {
    uint64_t address;
    uint32_t nbytes;
    uint32_t words() const { return (nbytes + NBYTES - 1) / NBYTES; }
};

static Range any_range(Random& random, uint32_t longest) {
    longest = std::min<uint64_t>(longest, uint64_t(1) << BYTES_WIDTH);
    Range range{BASE + random.below(SPACE), 0};
    range.nbytes = random.below(8) == 0 ? random.below(3 * NBYTES) : random.below(longest);
    if (range.address + range.nbytes > BASE + SPACE) range.nbytes = BASE + SPACE - range.address;
    if (REALIGN == 0) range.address &= ~uint64_t(NBYTES - 1);
    return range;
}

// Offers commands, one after the other.
template <class Model>
struct Commands {
    Model& top;
    std::deque<Range> left;
    void drive(Random& random, double stalls) {
        if (top.cmd_valid_i || left.empty() || random.chance(stalls)) return;
        top.cmd_valid_i = 1;
        top.cmd_addr_i = left.front().address;
        top.cmd_bytes_i = left.front().nbytes;
    }
    bool taken() const { return top.cmd_valid_i && top.cmd_ready_o; }
    void after(bool taken) {
        if (!taken) return;
        left.pop_front();
        top.cmd_valid_i = 0;
    }
};

static uint64_t check_read(Memory& memory, const std::deque<Range>& ranges, double stalls, unsigned latency,
                           Random& random) {
    Bench<Vaxi_read> bench;
    Vaxi_read& top = *bench.top;
    ReadPort port{memory,       NBYTES,       top.arvalid_o, top.arready_i, top.araddr_o,
                  top.arlen_o,  top.arsize_o, top.arburst_o, top.rvalid_i,  top.rready_o,
                  &top.rdata_i, top.rlast_i,  stalls,        latency};
    Commands<Vaxi_read> commands{top, ranges};
    bench.clock = &top.clk_i;
    top.cmd_valid_i = top.ready_i = 0;
    port.clear();
    bench.reset(top.rst_ni);
    const uint64_t from = bench.cycle;
    uint64_t words = 0;
    for (const Range& range : ranges) {
        for (uint32_t word = 0; word < range.words();) {
            CHECK(bench.cycle - from < 100000 + 100 * words, "no word for a long time");
            commands.drive(random, stalls);
            top.ready_i = !random.chance(stalls);
            port.drive(bench.cycle, random);
            bench.low();
            port.sample(bench.cycle);
            const bool taken = commands.taken();
            if (top.valid_o && top.ready_i) {
                const uint32_t count = std::min(NBYTES, range.nbytes - word * NBYTES);
                const uint8_t* expected = memory.at(range.address + uint64_t(word) * NBYTES, count);
                CHECK(std::memcmp(&top.data_o, expected, count) == 0,
                      "word %u of %u bytes at 0x%llx is wrong", word, range.nbytes,
                      (unsigned long long)range.address);
                CHECK(top.last_o == (word + 1 == range.words()), "last_o in word %u of %u", word,
                      range.words());
                ++word;
                ++words;
            }
            bench.high();
            commands.after(taken);
            port.after();
        }
    }
    const uint64_t cycles = bench.cycle - from;
    for (int i = 0; i < 50; ++i) {
        commands.drive(random, 0);
        top.ready_i = 1;
        bench.low();
        CHECK(!top.valid_o, "a word too many");
        const bool taken = commands.taken();
        bench.high();
        commands.after(taken);
    }
    CHECK(top.idle_o && commands.left.empty(), "not idle at the end");
    CHECK(port.max_outstanding <= 8, "%u bursts on the way", port.max_outstanding);
    return cycles;
}

static uint64_t check_write(Memory& memory, const std::deque<Range>& ranges, double stalls, unsigned latency,
                            Random& random) {
    Bench<Vaxi_write> bench;
    Vaxi_write& top = *bench.top;
    WritePort port{memory,       NBYTES,        top.awvalid_o, top.awready_i, top.awaddr_o, top.awlen_o,
                   top.awsize_o, top.awburst_o, top.wvalid_o,  top.wready_i,  &top.wdata_o, &top.wstrb_o,
                   top.wlast_o,  top.bvalid_i,  top.bready_o,  stalls,        latency};
    Commands<Vaxi_write> commands{top, ranges};
    bench.clock = &top.clk_i;
    top.cmd_valid_i = top.valid_i = 0;
    port.clear();
    bench.reset(top.rst_ni);
    std::vector<uint8_t> expected = memory.bytes;
    std::deque<std::vector<uint8_t>> words;
    for (const Range& range : ranges) {
        for (uint32_t word = 0; word < range.words(); ++word) {
            words.emplace_back(NBYTES);
            for (auto& byte : words.back()) byte = random.bits();
            const uint32_t count = std::min(NBYTES, range.nbytes - word * NBYTES);
            std::memcpy(&expected[range.address - BASE + uint64_t(word) * NBYTES], words.back().data(),
                        count);
        }
    }
    const uint64_t from = bench.cycle, bound = 100000 + 100 * words.size();
    bool busy = true;
    while (busy) {
        CHECK(bench.cycle - from < bound, "%zu words left, %zu commands", words.size(), commands.left.size());
        commands.drive(random, stalls);
        if (!top.valid_i && !words.empty() && !random.chance(stalls)) {
            top.valid_i = 1;
            std::memcpy(&top.data_i, words.front().data(), NBYTES);
        }
        port.drive(bench.cycle, random);
        bench.low();
        port.sample(bench.cycle);
        const bool taken = commands.taken();
        busy = !commands.left.empty() || !top.idle_o;
        const bool word_taken = top.valid_i && top.ready_o;
        if (top.idle_o && !top.cmd_valid_i)
            CHECK(port.queue.empty() && port.answers.empty(), "idle with a burst unanswered");
        bench.high();
        commands.after(taken);
        if (word_taken) {
            words.pop_front();
            top.valid_i = 0;
        }
        port.after();
    }
    CHECK(words.empty() && !top.valid_i, "%zu words were not taken", words.size());
    for (uint32_t i = 0; i < SPACE; ++i) {
        CHECK(memory.bytes[i] == expected[i], "byte 0x%llx is %02x, expected %02x",
              (unsigned long long)BASE + i, memory.bytes[i], expected[i]);
    }
    CHECK(port.max_outstanding <= 8, "%u bursts unanswered", port.max_outstanding);
    return bench.cycle - from;
}

int main() {
    Random random(DATA_WIDTH);
    Memory memory{BASE, std::vector<uint8_t>(SPACE)};
    for (auto& byte : memory.bytes) byte = random.bits();
    for (double stalls : {0.0, 0.1, 0.5}) {
        for (uint32_t longest : {40u, 5000u}) {
            std::deque<Range> ranges;
            for (uint32_t i = 0; i < (longest == 40 ? 1500u : 60u); ++i)
                ranges.push_back(any_range(random, longest));
            ranges.push_back({BASE, 1});
            check_read(memory, ranges, stalls, 1 + random.below(60), random);
            check_write(memory, ranges, stalls, 1 + random.below(60), random);
        }
    }

    if (BYTES_WIDTH < 20) {
        std::printf("axi %d bits, short ranges alone\nPASS\n", DATA_WIDTH);
        return 0;
    }

    // Speed: a word a cycle over one long range, and over rows of four words.
    const uint32_t words = SPACE / NBYTES;
    const std::deque<Range> whole{{BASE, SPACE}};
    std::deque<Range> rows;
    for (uint32_t i = 0; i < words / 8; ++i) rows.push_back({BASE + uint64_t(i) * 8 * NBYTES, 4 * NBYTES});
    const uint64_t read = check_read(memory, whole, 0, 40, random),
                   write = check_write(memory, whole, 0, 40, random);
    const uint64_t read_rows = check_read(memory, rows, 0, 10, random),
                   write_rows = check_write(memory, rows, 0, 10, random);
    CHECK(read < words + 80 && write < words + 80, "%llu cycles to read, %llu to write %u words",
          (unsigned long long)read, (unsigned long long)write, words);
    CHECK(read_rows < words / 2 + 80 && write_rows < words / 2 + 80,
          "%llu cycles to read, %llu to write %u words in rows", (unsigned long long)read_rows,
          (unsigned long long)write_rows, words / 2);
    std::printf("axi %d bits: %u words read in %llu cycles, written in %llu\nPASS\n", DATA_WIDTH, words,
                (unsigned long long)read, (unsigned long long)write);
    return 0;
}
