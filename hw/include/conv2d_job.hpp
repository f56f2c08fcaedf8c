// What a run of a conv2d kernel is told besides its tensors: a job, JOB_WORDS words in memory.
//
// As arguments they would be registers, 38 of them; a program in Python that writes one after the other pays
// 31 us each on a board, 1.2 ms before every run. Memory is written by ordinary stores. So the kernel has one
// pointer for them all, and begins by reading what is behind it, in bursts, into registers of its own.
#pragma once
#include "conv2d.hpp"

namespace conv2d {
// The words in memory have this order; `image`, `weight` and `result` are steps in elements.
struct Job {
    Size size;
    Window window;
    Steps image, weight, result;
    Tiling tiling;
    int mode;
};
constexpr int JOB_WORDS = 38;
static_assert(sizeof(Job) == JOB_WORDS * sizeof(int32_t), "a word for each member");

// Word by word: a pointer to the struct would ask for a port of its whole width, 1216 bits.
inline Job read_job(const int32_t* job) {
    int32_t w[JOB_WORDS];
#pragma HLS ARRAY_PARTITION variable=w type=complete
job_loop:
    for (int i = 0; i < JOB_WORDS; ++i) {
#pragma HLS PIPELINE II=1
        w[i] = job[i];
    }
    return {{w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7], w[8], w[9]},  // size
            {w[10], w[11], w[12], w[13], w[14], w[15], w[16], w[17]},      // window
            {w[18], w[19], w[20], w[21], w[22]},                           // steps of the image,
            {w[23], w[24], w[25], w[26], w[27]},                           // of the weight,
            {w[28], w[29], w[30], w[31], w[32]},                           // of the result
            {w[33], w[34], w[35], w[36]},                                  // tiling
            w[37]};                                                        // mode
}
}  // namespace conv2d
