// Testbench of affine_lite: less than the registers hold, all, more than all, and a guard behind the result.
#include "affine_lite.hpp"

#include <initializer_list>

#include "../../include/affine_tb.hpp"

using affine_lite_config::CAPACITY;

static int check(int n) {
    float x[CAPACITY], y[CAPACITY];
    for (int i = 0; i < CAPACITY; ++i) {
        x[i] = affine_tb::sample(i);
        y[i] = -1234.0f;
    }
    affine_lite(x, y, 1.1f, -0.3f, n);
    int errors = 0;
    for (int i = 0; i < CAPACITY; ++i) {
        const float expected = i < n ? affine_tb::golden(i, 1.1f, -0.3f) : -1234.0f;
        if (y[i] != expected) errors = affine_tb::wrong(errors, i, y[i], expected);
    }
    return affine_tb::verdict("affine_lite", n, errors);
}

int main() {
    int errors = 0;
    for (int n : {-1, 0, 1, CAPACITY - 1, CAPACITY, CAPACITY + 5}) errors += check(n);
    return errors == 0 ? 0 : 1;
}
