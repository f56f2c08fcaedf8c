// hls::print: printf with one number, which also works in RTL simulation (UG1399).
#pragma once

#include <cstdio>

namespace hls {
inline void print(const char* text) { std::fputs(text, stdout); }
inline void print(const char* format, int value) { std::printf(format, value); }
inline void print(const char* format, double value) { std::printf(format, value); }
}  // namespace hls
