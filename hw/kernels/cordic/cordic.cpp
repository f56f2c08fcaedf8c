// cordic: an angle a cycle, through 32 steps that are 32 stages of a pipeline.
//
// A vector is turned step by step until it points where the angle says; then its coordinates are
// cosine and sine. Step i turns by the angle whose tangent is 2^-i, to the left or to the right. A
// turn by it is  x - y * 2^-i  and  y + x * 2^-i:  a shift is a wire, so a step is three adders.
// Each turn makes the vector longer by the same factor, so it starts shorter by all of them.
#include "cordic.hpp"

using namespace cordic_config;

static const Wide PI = 3.14159265358979324;
static const Wide HALF_PI = 1.57079632679489662;
static const Wide START = 0.60725293500888126;  // product of cos(atan(2^-i))
static const Wide ATAN[STEPS] = {
    0.78539816339744828, 0.46364760900080609, 0.24497866312686414, 0.12435499454676144,
    0.06241880999595735, 0.031239833430268277, 0.015623728620476831, 0.0078123410601011111,
    0.0039062301319669718, 0.0019531225164788188, 0.00097656218955931946, 0.00048828121119489829,
    0.00024414062014936177, 0.00012207031189367021, 6.1035156174208773e-05, 3.0517578115526096e-05,
    1.5258789061315762e-05, 7.62939453110197e-06, 3.8146972656064961e-06, 1.907348632810187e-06,
    9.5367431640596084e-07, 4.7683715820308884e-07, 2.3841857910155797e-07, 1.1920928955078068e-07,
    5.9604644775390552e-08, 2.9802322387695303e-08, 1.4901161193847655e-08, 7.4505805969238281e-09,
    3.7252902984619141e-09, 1.862645149230957e-09, 9.3132257461547852e-10, 4.6566128730773926e-10,
};

static void sine_and_cosine(Number angle, Number& sine, Number& cosine) {
    // All steps together reach 1.74. Beyond a quarter of the circle the angle goes half a circle
    // back, which changes the sign of both results.
    const bool right = angle > HALF_PI;
    const bool left = angle < -HALF_PI;
    Wide rest = angle;
    if (right) rest -= PI;
    if (left) rest += PI;

    Wide x = START, y = 0;
step_loop:
    for (int i = 0; i < STEPS; ++i) {
#pragma HLS UNROLL
        const Wide dx = y >> i, dy = x >> i;
        if (rest < 0) {
            x += dx;
            y -= dy;
            rest += ATAN[i];
        } else {
            x -= dx;
            y += dy;
            rest -= ATAN[i];
        }
    }
    if (right || left) {
        x = -x;
        y = -y;
    }
    cosine = x;  // the 8 additional bits are cut off
    sine = y;
}

void cordic(const Number* angles, Number* sines, Number* cosines, int n) {
#pragma HLS INTERFACE m_axi port=angles bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST
#pragma HLS INTERFACE m_axi port=sines bundle=gmem1 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST
#pragma HLS INTERFACE m_axi port=cosines bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST
#pragma HLS INTERFACE s_axilite port=angles bundle=control
#pragma HLS INTERFACE s_axilite port=sines bundle=control
#pragma HLS INTERFACE s_axilite port=cosines bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

angle_loop:
    for (int i = 0; i < n; ++i) {
#pragma HLS PIPELINE II=1
#pragma HLS LOOP_TRIPCOUNT min=1 max=COSIM_DEPTH
        // Two arrays at two masters: each is a burst of its own, and neither waits for the other.
        Number sine, cosine;
        sine_and_cosine(angles[i], sine, cosine);
        sines[i] = sine;
        cosines[i] = cosine;
    }
}
