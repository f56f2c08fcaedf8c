// Testbench of fft: by the definition, in double; an impulse, a constant, waves, noise at full scale.
#include "fft.hpp"

#include <cmath>
#include <complex>
#include <cstdio>
#include <vector>

using fft_config::COSIM_DEPTH;
using fft_config::N;
using fft_config::Number;
using Complex = std::complex<double>;

static const double BOUND = std::ldexp(1.0, -25);
static const double TURN = 6.28318530717958648 / N;

// Frames of five kinds in turn.
static Complex sample(int frame, int i) {
    static unsigned int noise = 1;
    noise = noise * 1664525u + 1013904223u;
    const int kind = frame % 5;
    if (kind == 0) return i == 3 ? Complex(1, -1) : Complex(0, 0);
    if (kind == 1) return Complex(-1, 1);
    if (kind == 2) return std::polar(1.0, TURN * 37 * i);
    if (kind == 3) return Complex(i % 2 ? -1 : 1, std::sin(TURN * 5 * i));
    return Complex(noise >> 31 ? 1 : -1, noise >> 30 & 1 ? 1 : -1);
}

static double off(const std::vector<Number>& input, const std::vector<Number>& output, int frame) {
    double worst = 0;
    for (int f = 0; f < N; ++f) {
        Complex sum = 0;
        for (int i = 0; i < N; ++i) {
            const int at = 2 * (frame * N + i);
            sum += Complex(input[at].to_double(), input[at + 1].to_double()) * std::polar(1.0, -TURN * (f * i % N));
        }
        const int at = 2 * (frame * N + f);
        const Complex wrong = Complex(output[at].to_double(), output[at + 1].to_double()) - sum / double(N);
        worst = std::fmax(worst, std::fmax(std::fabs(wrong.real()), std::fabs(wrong.imag())));
    }
    return worst;
}

static int check(int frames) {
    const int size = 2 * N * (frames > 0 ? frames : 0);
    const int capacity = COSIM_DEPTH;
    const Number guard = -1.75;
    std::vector<Number> input(capacity), output(capacity + 1, guard);
    for (int i = 0; i < capacity / 2; ++i) {
        const Complex value = sample(i / N, i % N);
        input[2 * i] = value.real();
        input[2 * i + 1] = value.imag();
    }
    fft(input.data(), output.data(), frames);

    int errors = 0;
    double worst = 0;
    for (int frame = 0; frame < frames; ++frame) {
        const double wrong = off(input, output, frame);
        worst = std::fmax(worst, wrong);
        if (wrong > BOUND && errors++ == 0) std::printf("  first wrong frame %d: by %g\n", frame, wrong);
    }
    for (int i = size; i <= capacity; ++i) errors += output[i] == guard ? 0 : 1;
    const char* verdict = errors == 0 ? "PASS" : "FAIL";
    std::printf("fft frames=%-3d worst %.2f * 2^-30 %s\n", frames, std::ldexp(worst, 30), verdict);
    return errors;
}

int main() {
    int errors = 0;
    for (int frames : {-1, 0, 1, 2, 7}) errors += check(frames);
    return errors == 0 ? 0 : 1;
}
