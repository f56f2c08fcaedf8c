// Testbench of spmv_f32: empty rows, repeated columns, both widths of an index, steps, a guard behind the result.
#include "spmv_f32.hpp"
#include "../../include/cosim.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

static const float GUARD = -12345.0f;

struct Csr {
    std::vector<int> crow, col;
    std::vector<float> values;
};

// Row r has r % 7 entries, and the last one of them the column of the one before. Two entries before all rows are
// of none, as in a slice of a larger matrix.
static Csr make(int rows, int columns, int wide) {
    Csr a;
    cosim::deepen(spmv_f32_config::COSIM_DEPTH, a.crow, a.col, a.values);
    a.crow.assign(wide, 2);
    a.col.assign(2 * wide, 0);
    a.values.assign(2, 99.0f);
    for (int r = 0; r < rows; ++r) {
        for (int k = 0; k < r % 7 * (columns > 0); ++k) {
            const int place = (r * 31 + (k == r % 7 - 1 ? k - 1 : k) * 17 + 17) % columns;
            a.col.push_back(place);
            if (wide == 2) a.col.push_back(-1);  // the high word must not be looked at
            a.values.push_back(0.25f * static_cast<float>((r + 3 * k) % 23 - 11));
        }
        a.crow.push_back(static_cast<int>(a.values.size()));
        if (wide == 2) a.crow.push_back(-1);
    }
    return a;
}

static int check(int rows, int columns, int n, int wide, int step) {
    const Csr a = make(rows, columns, wide);
    // All values are multiples of 1/16 and small: their sums are exact in any order.
    const int row_b = step, row_found = n + 2;
    std::vector<float> b(columns * row_b);
    for (size_t i = 0; i < b.size(); ++i) b[i] = 0.25f * static_cast<float>((i + rows + wide) % 29) - 3.0f;
    std::vector<float> found(rows * row_found + 1, GUARD), expected(found);
    cosim::deepen(spmv_f32_config::COSIM_DEPTH, b, found);
    for (int r = 0; r < rows; ++r) {
        for (int j = 0; j < n; ++j) {
            float sum = 0.0f;
            for (int k = a.crow[r * wide]; k < a.crow[(r + 1) * wide]; ++k) {
                sum += a.values[k] * b[a.col[k * wide] * row_b + j * step];
            }
            expected[r * row_found + j] = sum;
        }
    }
    spmv_f32(a.crow.data(), a.col.data(), a.values.data(), b.data(), found.data(), rows, columns, wide, row_b, row_found);

    int errors = 0;
    for (size_t i = 0; i < found.size(); ++i) {
        if (!(found[i] == expected[i]) && errors++ == 0) {
            std::printf("  first wrong index %d: %g, expected %g\n", static_cast<int>(i), found[i], expected[i]);
        }
    }
    std::printf("spmv_f32 rows=%-4d columns=%-5d n=%-4d wide=%d step=%d %s\n", rows, columns, n, wide, step,
                errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    int errors = 0;
    for (int wide = 1; wide <= 2; ++wide) {
        for (int step = 1; step <= 2; ++step) {
            errors += check(0, 5, 1, wide, step) + check(1, 1, 1, wide, step) + check(100, 37, 1, wide, step);
            errors += check(50, spmv_f32_config::Table::VECTOR, 1, wide, step);
            errors += check(50, spmv_f32_config::Table::VECTOR + 1, 1, wide, step);
        }
    }
    return errors == 0 ? 0 : 1;
}
