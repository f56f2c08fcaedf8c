// Testbench of cordic: the whole range of angles against the PC's sine and cosine in double.
#include "cordic.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using cordic_config::COSIM_DEPTH;
using cordic_config::Number;

static const double BOUND = std::ldexp(1.0, -28);

static int check(int n) {
    const int capacity = COSIM_DEPTH + 1;
    const Number guard = -3.5;
    std::vector<Number> angles(capacity), sines(capacity, guard), cosines(capacity, guard);
    const double special[] = {0, -4, 3.9999999981, 1.57079632679, -1.57079632679, 3.14159265359, -3.14159265359, 1e-8};
    for (int i = 0; i < capacity; ++i) angles[i] = i < 8 ? special[i] : -4 + 8.0 * i / capacity;
    cordic(angles.data(), sines.data(), cosines.data(), n);

    int errors = 0;
    double worst = 0;
    for (int i = 0; i < capacity; ++i) {
        const double angle = angles[i].to_double();
        const double sine = i < n ? std::sin(angle) : -3.5, cosine = i < n ? std::cos(angle) : -3.5;
        const double off_sine = std::fabs(sines[i].to_double() - sine);
        const double off = std::fmax(off_sine, std::fabs(cosines[i].to_double() - cosine));
        worst = std::fmax(worst, off);
        if (off > BOUND && errors++ == 0) std::printf("  first wrong index %d, angle %.10f: by %g\n", i, angle, off);
    }
    std::printf("cordic n=%-6d worst %.2f * 2^-29 %s\n", n, std::ldexp(worst, 29), errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    int errors = 0;
    for (int n : {-1, 0, 1, 8, 1000, COSIM_DEPTH}) errors += check(n);
    return errors == 0 ? 0 : 1;
}
