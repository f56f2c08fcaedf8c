// Each rule of a program of kernel net at its edge: words that just break it, and words that just keep it.
#pragma once
#include <cstdio>

#include "net_tb.hpp"

namespace net_tb {
// Words of an instruction that are changed, and what `check` says then.
struct Rule { const Case& base; std::vector<std::vector<uint32_t>> words; Reason reason; };

inline Reason reason_of(const Rule& rule) {
    const Case& c = rule.base;
    Program p(c);
    for (const auto& change : rule.words) p.words[change[0]] = change[1];
    // Wide enough for what is too much work; else what the program needs, with the guards of its arena.
    const bool wide = rule.words.size() > 4;
    const Limits own = {c.outs * (c.channels / c.groups) * c.w.taps_y * c.w.taps_x, 2 * c.outs + (c.flags & SUM ? SUM_WORDS : 0), p.arena};
    return check(decode(p.words.data()), wide ? Limits{0xffffffff, 0xffffffff, 0xffffffff} : own);
}

// The numbers are part of the format, which programs in memory are written in.
inline int check_numbers() {
    const int reasons[] = {OK, BAD_VERSION, BAD_OPCODE, BAD_SIZE, BAD_SHAPE, BAD_WINDOW, TOO_WIDE, BAD_RANGE, BAD_STEPS,
                           OUTSIDE_SOURCE, OUTSIDE_RESULT, OVERLAP, OUTSIDE_WEIGHTS, OUTSIDE_TABLE, TOO_MUCH, NO_END};
    const int opcodes[] = {END, CONV, MAX, MEAN, ADD};
    int errors = VERSION != 1 || WORDS != 32 || HEADER != 8 || FLOAT != 1 || SUM != 2 || SUM_WORDS != 4 || PATCH != 4096 || TAPS != 1024;
    for (int i = 0; i < 16; ++i) errors += reasons[i] != i;
    for (int i = 0; i < 5; ++i) errors += opcodes[i] != i;
    return errors;
}

inline int check_rules() {
    // First bytes and ends: x 16 to 124, y 264 to 408 of 424 (float: to 840 of 856).
    const Case conv = {CONV, 0, 1, 3, 4, 6, 6, {3, 3, 1, 1, 1}, -7, 100}, whole = {CONV, FLOAT, 1, 3, 4, 6, 6, {3, 3, 1, 1, 1}, -7, 100};
    const Case max = {MAX, 0, 3, 3, 3, 7, 7, {3, 3, 2, 1, 1}, -100, 60};
    // x 16 to 76, b 92 to 152, y 168 to 228 of 244.
    const Case add = {ADD, 0, 3, 3, 3, 4, 5, {1, 1, 1, 0, 1}, -7, 90};
    // x 16 to 124, b 140 to 284, y 300 to 444 of 460.
    const Case sum = {CONV, SUM, 1, 3, 4, 6, 6, {3, 3, 1, 1, 1}, -7, 100};
    const uint32_t version = uint32_t(VERSION) << 24, minus = 0xffffffff;
    std::vector<Rule> rules = {
        {conv, {{0, 2 * version | CONV}}, BAD_VERSION}, {conv, {{0, CONV}}, BAD_VERSION}, {conv, {{0, version | 5}}, BAD_OPCODE},
        {conv, {{0, version | 4 << 8 | CONV}}, BAD_OPCODE}, {conv, {{0, version | FLOAT << 8 | MAX}}, BAD_OPCODE},
        {sum, {{0, version | (SUM | FLOAT) << 8 | CONV}}, BAD_OPCODE}, {sum, {{0, version | SUM << 8 | MAX}}, BAD_OPCODE}, {add, {{0, version | SUM << 8 | ADD}}, BAD_OPCODE},
        {sum, {}, OK}, {sum, {{29, 37}}, BAD_SHAPE}, {sum, {{30, 7}}, BAD_SHAPE}, {sum, {{29, 37}, {5, 37}}, OK}, {sum, {{29, 35}, {5, 35}}, BAD_STEPS},
        {sum, {{28, 156}}, OK}, {sum, {{28, 157}}, OVERLAP}, {sum, {{28, 316}}, OVERLAP}, {sum, {{28, 317}}, OUTSIDE_SOURCE}, {sum, {{23, 1}}, OUTSIDE_TABLE},
        {sum, {{4, 0}, {1, 300}, {28, 144}}, OK}, {sum, {{4, 0}, {1, 300}, {28, 143}}, OVERLAP},
        {conv, {{0, version | END}, {7, 0}}, OK}, {conv, {{18, 65536}}, BAD_SIZE}, {conv, {{19, 65536}}, BAD_SIZE},
        {conv, {{13, 2}}, BAD_SHAPE}, {conv, {{13, 3}}, BAD_SHAPE}, {max, {{7, 4}}, BAD_SHAPE}, {max, {{13, 1}}, BAD_SHAPE},
        {max, {{7, 1}, {10, 1}}, BAD_SHAPE}, {add, {{11, 3}}, BAD_SHAPE}, {add, {{12, 4}}, BAD_SHAPE},
        {conv, {{18, 2}}, OK}, {conv, {{19, 2}}, OK}, {conv, {{18, 3}}, BAD_WINDOW}, {conv, {{19, 3}}, BAD_WINDOW},
        {conv, {{18, 4}, {20, 2}}, OK}, {conv, {{19, 4}, {21, 2}}, OK}, {conv, {{18, 5}, {20, 2}}, BAD_WINDOW}, {conv, {{19, 5}, {21, 2}}, BAD_WINDOW},
        {conv, {{11, 7}}, BAD_STEPS}, {conv, {{11, 8}}, BAD_WINDOW}, {conv, {{12, 7}}, BAD_STEPS}, {conv, {{12, 8}}, BAD_WINDOW},
        {conv, {{16, 2}}, BAD_WINDOW}, {conv, {{17, 2}}, BAD_WINDOW}, {conv, {{11, 4}, {16, 2}}, OK}, {conv, {{12, 4}, {17, 2}}, OK},
        {conv, {{15, 1024}}, OUTSIDE_WEIGHTS}, {conv, {{15, 1025}}, TOO_WIDE}, {conv, {{15, 2}, {21, 4095}}, OK}, {conv, {{15, 2}, {21, 4096}}, TOO_WIDE},
        {conv, {{26, 100}}, OK}, {conv, {{26, 101}}, BAD_RANGE}, {conv, {{26, minus - 127}}, OK}, {conv, {{27, 127}}, OK},
        {conv, {{3, 5}}, BAD_STEPS}, {conv, {{2, 35}}, BAD_STEPS}, {conv, {{6, 5}}, BAD_STEPS}, {conv, {{5, 35}}, BAD_STEPS}, {conv, {{6, 7}}, BAD_STEPS},
        {add, {{29, 19}}, BAD_STEPS}, {add, {{30, 4}}, BAD_STEPS}, {whole, {{6, 20}}, BAD_STEPS}, {whole, {{5, 140}}, BAD_STEPS},
        {whole, {{4, 265}}, BAD_STEPS}, {whole, {{4, 266}}, BAD_STEPS}, {whole, {{5, 145}}, BAD_STEPS}, {whole, {{5, 148}}, OK}, {whole, {}, OK}, {max, {}, OK}, {add, {}, OK},
        {conv, {{1, 316}}, OVERLAP}, {conv, {{1, 317}}, OUTSIDE_SOURCE}, {conv, {{1, minus}}, OUTSIDE_SOURCE}, {conv, {{2, 1u << 31}}, OUTSIDE_SOURCE},
        {add, {{28, 184}}, OVERLAP}, {add, {{28, 185}}, OUTSIDE_SOURCE}, {conv, {{28, 400}}, OK}, {conv, {{4, 280}}, OK}, {conv, {{4, 281}}, OUTSIDE_RESULT},
        {whole, {{4, 280}}, OK}, {whole, {{4, 284}}, OUTSIDE_RESULT}, {conv, {{4, 124}}, OK}, {conv, {{4, 123}}, OVERLAP},
        {conv, {{4, 0}, {1, 144}}, OK}, {conv, {{4, 0}, {1, 143}}, OVERLAP}, {add, {{4, 152}}, OK}, {add, {{4, 151}}, OVERLAP},
        {add, {{4, 0}, {1, 168}, {28, 60}}, OK}, {add, {{4, 0}, {1, 168}, {28, 59}}, OVERLAP},
        {conv, {{22, 1}}, OUTSIDE_WEIGHTS}, {conv, {{22, minus}}, OUTSIDE_WEIGHTS}, {max, {{22, 9999}}, OK},
        {conv, {{23, 1}}, OUTSIDE_TABLE}, {conv, {{23, minus}}, OUTSIDE_TABLE}, {max, {{23, 4}}, OK}, {max, {{23, 5}}, OUTSIDE_TABLE}};
    for (uint32_t outs : {256, 257}) {  // 256 channels of 256 x 256 results from as many are 2^32 products
        rules.push_back({conv, {{7, 256}, {8, 256}, {9, 256}, {10, outs}, {11, 256}, {12, 256}, {14, 1}, {15, 1}, {18, 0}, {19, 0}, {2, 65536},
                                {3, 256}, {4, 1 << 25}, {5, 65536}, {6, 256}}, outs == 256 ? OK : TOO_MUCH});
    }
    for (uint32_t word = 7; word < 22; ++word) {
        if (word != 18 && word != 19) rules.push_back({conv, {{word, 0}}, BAD_SIZE}), rules.push_back({conv, {{word, 65536}}, BAD_SIZE});
    }
    for (uint32_t word : {24, 25, 26, 27, 31}) {
        rules.push_back({conv, {{word, 128}}, BAD_RANGE}), rules.push_back({conv, {{word, minus - 128}}, BAD_RANGE});
    }
    int errors = check_numbers();
    for (const Rule& rule : rules) {
        const Reason reason = reason_of(rule);
        errors += reason != rule.reason;
        if (reason != rule.reason) std::printf("net rule: opcode %d, word %u: %d, not %d FAIL\n", rule.base.opcode, rule.words.empty() ? 0 : rule.words[0][0], reason, rule.reason);
    }
    std::printf("net rules %s\n", errors == 0 ? "PASS" : "FAIL");
    return errors;
}
}  // namespace net_tb
