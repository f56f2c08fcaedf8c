// prefix_sum: the sum of each element and all before it, in int32.
//
// | parameter   | value | why                                                    |
// |-------------|-------|--------------------------------------------------------|
// | COSIM_DEPTH | 4096  | elements behind each pointer in co-simulation          |
// | BURST       | 16    | the longest burst of an AXI3 port of the Zynq-7000 PS  |
#pragma once

namespace prefix_sum_config {
constexpr int COSIM_DEPTH = 4096;
constexpr int BURST = 16;
}  // namespace prefix_sum_config

// sums[i] = values[0] + ... + values[i], modulo 2^32; sums may not overlap values. n <= 0 does nothing.
void prefix_sum(const int* values, int* sums, int n);
