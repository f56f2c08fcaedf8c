// Testbench of net: every opcode against plain loops, guards around the result, and programs that are wrong.
#include "net.hpp"

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

#include "../../include/cosim.hpp"
#include "../../include/net_rules_tb.hpp"

using namespace net_tb;

static int check_case(const Case& c) {
    const Program p(c);
    std::vector<int8_t> arena(p.arena), weights(c.outs * (c.channels / c.groups) * c.w.taps_y * c.w.taps_x);
    std::vector<int32_t> tables(2 * c.outs + (c.flags & SUM ? SUM_WORDS : 0));
    std::vector<uint32_t> outcome(HEADER + 3, 77), words = p.words;
    for (size_t i = 0; i < arena.size(); ++i) arena[i] = static_cast<int8_t>(noise(i));
    for (size_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int8_t>(noise(i + 1000));
    for (int o = 0; o < c.outs; ++o) tables[2 * o] = 37 * noise(o), tables[2 * o + 1] = as_bits(multiplier(o));
    if (c.opcode == ADD) tables[0] = as_bits(0.75f), tables[1] = as_bits(1.3f);
    if (c.flags & SUM) tables[2 * c.outs] = as_bits(0.75f), tables[2 * c.outs + 1] = as_bits(1.3f), tables[2 * c.outs + 2] = NUMBERS;
    cosim::deepen(net_config::COSIM_DEPTH, words, weights, tables, arena, outcome);
    std::vector<int8_t> expected = arena;
    for (int o = 0; o < c.outs; ++o) {
        for (int y = 0; y < p.rows; ++y) {
            for (int x = 0; x < p.columns; ++x) {
                const float value = golden(c, p, arena, weights, tables, o, y, x);
                const int64_t element = (int64_t(o) * p.rows + y) * p.columns + x;
                if (c.flags & FLOAT) std::memcpy(&expected[words[4] + 4 * element], &value, 4);
                else expected[words[4] + element] = static_cast<int8_t>(std::fmax(c.low, std::fmin(c.high, std::nearbyint(value) - 7)));
            }
        }
    }
    net(words.data(), weights.data(), tables.data(), arena.data(), outcome.data(), 2, weights.size(), tables.size(), arena.size());
    const bool told = outcome[0] == OK && outcome[1] == 1 && outcome[2] == VERSION && outcome[HEADER + 1] == 0 && outcome[HEADER + 2] == 77;
    const int errors = (arena != expected) + !told;
    std::printf("net opcode=%d flags=%d groups=%-2d %dx%dx%d %s\n", c.opcode, c.flags, c.groups, c.channels, c.height, c.width, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

// A program stops at an instruction that is invalid, before it writes anything: which word, the value, and the reason.
static int check_wrong() {
    const Case good = {CONV, 0, 1, 3, 4, 6, 6, {3, 3, 1, 1, 1}, -128, 127};
    const uint32_t wrong[][3] = {{7, 0, BAD_SIZE}, {4, 20, OVERLAP}, {32, VERSION << 24 | CONV, BAD_SIZE}};
    int errors = 0;
    for (const auto& change : wrong) {
        const Program p(good);
        std::vector<int8_t> arena(p.arena, 1), weights(108, 1), before = arena;
        std::vector<int32_t> tables(8, 0);
        std::vector<uint32_t> outcome(HEADER + 2, 77), words = p.words;
        words[change[0]] = change[1];
        cosim::deepen(net_config::COSIM_DEPTH, words, weights, tables, arena, outcome);
        net(words.data(), weights.data(), tables.data(), arena.data(), outcome.data(), 2, weights.size(), tables.size(), arena.size());
        const bool pass = outcome[0] == change[2] && outcome[1] == change[0] / WORDS && (arena == before || change[0] >= WORDS);
        if (!pass) std::printf("net word %u = %u: reason %u at %u FAIL\n", change[0], change[1], outcome[0], outcome[1]);
        errors += !pass;
    }
    std::printf("net wrong programs %s\n", errors == 0 ? "PASS" : "FAIL");
    return errors;
}

// A program of no instructions has no END: the report is its header, and nothing behind it is written.
static int check_empty() {
    std::vector<int8_t> arena(1), weights(1);
    std::vector<int32_t> tables(1);
    std::vector<uint32_t> outcome(HEADER + 1, 77), words(WORDS);
    cosim::deepen(net_config::COSIM_DEPTH, words, weights, tables, arena, outcome);
    net(words.data(), weights.data(), tables.data(), arena.data(), outcome.data(), 0, 0, 0, 0);
    const bool pass = outcome[0] == NO_END && outcome[1] == 0 && outcome[2] == VERSION && outcome[HEADER - 1] == 0 && outcome[HEADER] == 77;
    std::printf("net empty program %s\n", pass ? "PASS" : "FAIL");
    return !pass;
}

// One that ends without END, behind an instruction that was done.
static int check_no_end() {
    const Program p({CONV, 0, 1, 3, 4, 6, 6, {3, 3, 1, 1, 1}, -128, 127});
    std::vector<int8_t> arena(p.arena, 1), weights(108, 1);
    std::vector<int32_t> tables(8, 0);
    std::vector<uint32_t> outcome(HEADER + 1, 77), words = p.words;
    cosim::deepen(net_config::COSIM_DEPTH, words, weights, tables, arena, outcome);
    net(words.data(), weights.data(), tables.data(), arena.data(), outcome.data(), 1, weights.size(), tables.size(), arena.size());
    const bool pass = outcome[0] == NO_END && outcome[1] == 1;
    std::printf("net program without an end %s\n", pass ? "PASS" : "FAIL");
    return !pass;
}

int main() {
    const Case cases[] = {
        {CONV, 0, 1, 3, 20, 9, 7, {3, 3, 1, 1, 1}, -128, 127}, {CONV, 0, 2, 4, 6, 8, 11, {2, 3, 2, 1, 2}, -7, 100},
        {CONV, FLOAT, 1, 5, 18, 6, 5, {1, 5, 1, 0, 1}, -128, 127}, {CONV, 0, 5, 5, 5, 12, 30, {3, 3, 1, 1, 1}, -128, 127},
        {CONV, 0, 1, 1, 2, 2, 700, {1, 2, 1, 0, 1}, -128, 127}, {CONV, 0, 1, 1, 2, 2, 4760, {1, 1, 17, 0, 1}, -128, 127},
        {CONV, 0, 1, 1, 2, 1, 4097, {1, 2, 1, 0, 4095}, -128, 127}, {CONV, 0, 1, 2, 3, 1, 600, {1, 3, 2, 0, 1}, -128, 127},
        {MAX, 0, 3, 3, 3, 7, 7, {3, 3, 2, 1, 1}, -100, 60}, {MEAN, 0, 3, 3, 3, 6, 6, {6, 6, 6, 0, 1}, -128, 127},
        {ADD, 0, 3, 3, 3, 4, 300, {1, 1, 1, 0, 1}, -7, 90}, {CONV, SUM, 1, 3, 20, 9, 7, {3, 3, 1, 1, 1}, -128, 127},
        {CONV, SUM, 2, 4, 6, 8, 11, {2, 3, 2, 1, 2}, -7, 100}, {CONV, SUM, 1, 2, 3, 1, 600, {1, 3, 2, 0, 1}, -128, 127}};
    int errors = check_rules() + check_wrong() + check_empty() + check_no_end();
    for (const Case& c : cases) errors += check_case(c);
    return errors == 0 ? 0 : 1;
}
