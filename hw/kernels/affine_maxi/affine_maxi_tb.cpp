// Testbench of affine_maxi: no element, one, many, in place, and a guard behind the result.
#include "affine_maxi.hpp"

#include <vector>

#include "../../include/affine_tb.hpp"

using affine_maxi_config::COSIM_DEPTH;

static int check(int n, bool in_place) {
    std::vector<float> x(COSIM_DEPTH), y(COSIM_DEPTH, -1234.0f);
    for (int i = 0; i < COSIM_DEPTH; ++i) x[i] = affine_tb::sample(i);
    std::vector<float>& found = in_place ? x : y;
    affine_maxi(x.data(), found.data(), 1.1f, -0.3f, n);
    int errors = 0;
    for (int i = 0; i < COSIM_DEPTH; ++i) {
        const float expected = i < n ? affine_tb::golden(i, 1.1f, -0.3f) : in_place ? affine_tb::sample(i) : -1234.0f;
        if (found[i] != expected) errors = affine_tb::wrong(errors, i, found[i], expected);
    }
    return affine_tb::verdict("affine_maxi", n, errors);
}

int main() {
    int errors = 0;
    for (int n : {-1, 0, 1, 17, COSIM_DEPTH - 1}) errors += check(n, false) + check(n, true);
    return errors == 0 ? 0 : 1;
}
