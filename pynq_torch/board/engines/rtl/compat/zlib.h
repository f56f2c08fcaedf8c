// The two functions of zlib that Verilator's FST writer calls, so that waves need no package of the
// system's. Nothing is compressed: the writer takes whichever is smaller, and what it compresses
// this way is small (names' geometry, first values); value changes go through lz4.h.
#pragma once

using uLong = unsigned long;
using uLongf = uLong;
using Bytef = unsigned char;

enum { Z_OK = 0 };

inline uLong compressBound(uLong nbytes) { return nbytes + 1; }

inline int compress2(Bytef*, uLongf* target_bytes, const Bytef*, uLong nbytes, int) {
    *target_bytes = nbytes + 1;  // larger than the source, so the writer keeps the source
    return Z_OK;
}
