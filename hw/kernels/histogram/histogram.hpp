// histogram: how often each of the 256 values of a byte occurs.
//
// | parameter   | value | why                                                       |
// |-------------|-------|-----------------------------------------------------------|
// | BINS        | 256   | every value of a byte has one; 1 KB, one BRAM of 18 Kbit  |
// | COSIM_DEPTH | 4096  | bytes behind the pointer in co-simulation                 |
#pragma once

namespace histogram_config {
constexpr int BINS = 256;
constexpr int COSIM_DEPTH = 4096;
constexpr int BURST = 16;  // the longest burst of an AXI3 port of the Zynq-7000 PS

static_assert(BINS == 1 << 8, "every value of a byte has a bin");
}  // namespace histogram_config

// values: n bytes; counts: BINS words, counts[v] becomes the number of bytes with the value v.
// n <= 0 counts nothing: all are 0.
void histogram(const unsigned char* values, int* counts, int n);
