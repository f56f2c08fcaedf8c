// The two functions of LZ4 that Verilator's FST writer calls, so that waves need no package of the
// system's. Blocks as in the LZ4 block format: a token, literals, an offset, and so on; one table of
// the positions where four bytes were seen last.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

inline int LZ4_compressBound(int nbytes) { return nbytes + nbytes / 255 + 16; }

inline int LZ4_compress_default(const char* source, char* target, int nbytes, int) {
    constexpr int kBits = 12, kMinMatch = 4;
    constexpr int kLastLiterals = 5, kMatchLimit = 12;  // no match begins in the last 12 bytes
    int table[1 << kBits];
    std::memset(table, -1, sizeof table);
    const auto* in = reinterpret_cast<const uint8_t*>(source);
    auto* out = reinterpret_cast<uint8_t*>(target);
    auto length = [&out](int rest) {  // what did not fit into the token's four bits
        for (; rest >= 255; rest -= 255) *out++ = 255;
        *out++ = static_cast<uint8_t>(rest);
    };
    auto literals = [&](int from, int to) {
        const int count = to - from;
        uint8_t* token = out++;
        *token = static_cast<uint8_t>(std::min(count, 15) << 4);
        if (count >= 15) length(count - 15);
        std::memcpy(out, in + from, static_cast<size_t>(count));
        out += count;
        return token;
    };
    int anchor = 0;
    for (int at = 0; at + kMatchLimit <= nbytes;) {
        uint32_t word;
        std::memcpy(&word, in + at, 4);
        int& slot = table[word * 2654435761u >> (32 - kBits)];
        const int before = slot;
        slot = at;
        if (before < 0 || at - before > 65535 || std::memcmp(in + before, in + at, kMinMatch)) {
            at++;
            continue;
        }
        int match = kMinMatch;
        while (at + match < nbytes - kLastLiterals && in[before + match] == in[at + match]) match++;
        uint8_t* token = literals(anchor, at);
        const int offset = at - before;
        *out++ = static_cast<uint8_t>(offset);
        *out++ = static_cast<uint8_t>(offset >> 8);
        const int extra = match - kMinMatch;
        *token |= static_cast<uint8_t>(std::min(extra, 15));
        if (extra >= 15) length(extra - 15);
        at += match;
        anchor = at;
    }
    literals(anchor, nbytes);
    return static_cast<int>(out - reinterpret_cast<uint8_t*>(target));
}
