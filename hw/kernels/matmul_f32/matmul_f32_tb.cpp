// Testbench of matmul_f32: sizes on, below and beyond the tile, every transposition, and guards.
#include "matmul_f32.hpp"
#include "../../include/cosim.hpp"

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <vector>

using matmul_f32_config::Shape;

namespace {
constexpr float GUARD = -12345.0f;
constexpr int GAP = 3;  // elements between rows

uint32_t state = 2024;
float next() {
    state = state * 1664525u + 1013904223u;
    return static_cast<float>(static_cast<int32_t>(state)) / 2147483648.0f;
}

// Room for `batch` matrices, row- or column-major with gaps between the rows, elements `step` apart.
struct Matrix {
    int matrix, row, column;
    std::vector<float> values;
    Matrix(int batch, int rows, int columns, bool transposed, int step = 1)
        : row(transposed ? step : columns * step + GAP), column(transposed ? rows * step + GAP : step), values() {
        matrix = (transposed ? columns * column : rows * row) + GAP;
        cosim::deepen(matmul_f32_config::COSIM_DEPTH, values);
        values.assign(static_cast<size_t>(batch) * matrix + 1, 0.0f);
        for (float& value : values) value = next();
    }
    float& at(int i, int r, int c) { return values[static_cast<size_t>(i) * matrix + r * row + c * column]; }
};

// rows: 0 for one row of the bias for all, 1 for a matrix of its own for each product, 2 for its columns in steps.
int check(int batch, int m, int n, int k, bool ta, bool tb, bool tc, int mode, int rows, int step) {
    Matrix a(batch, m, k, ta, step), b(batch, k, n, tb, step), c(batch, m, n, tc, step), bias(rows ? batch : 1, m, n, rows == 2);
    if (rows == 0) bias.matrix = bias.row = 0;
    for (float& value : c.values) value = GUARD;
    const float alpha = mode ? -0.5f : 1.0f, beta = mode ? 3.0f : 1.0f;
    matmul_f32(a.values.data(), b.values.data(), bias.values.data(), c.values.data(), batch, m, n, k, a.matrix, a.row,
               a.column, b.matrix, b.row, b.column, bias.matrix, bias.row, bias.column, c.matrix, c.row, c.column, alpha,
               beta, mode);
    int errors = 0;
    for (int i = 0; i < batch; ++i) {
        for (int r = 0; r < m; ++r) {
            for (int s = 0; s < n; ++s) {
                double exact = 0, size = 1e-30;
                for (int d = 0; d < k; ++d) {
                    exact += static_cast<double>(a.at(i, r, d)) * b.at(i, d, s);
                    size += std::fabs(static_cast<double>(a.at(i, r, d)) * b.at(i, d, s));
                }
                exact = alpha * exact + (mode & 4 ? beta * bias.at(i, r, s) : 0.0);
                if (mode & 8 && exact < 0) exact = 0;
                const double bound = (k + 3) * 6e-8 * (size + 4);
                if (!(std::fabs(c.at(i, r, s) - exact) <= bound) && errors++ == 0) {
                    std::printf("  first wrong [%d][%d][%d]: %g, expected %g\n", i, r, s, c.at(i, r, s), exact);
                }
                c.at(i, r, s) = GUARD;
            }
        }
    }
    for (float value : c.values) errors += value != GUARD;  // nothing beside the product may change
    std::printf("matmul_f32 %dx(%d x %d x %d) %d%d%d mode %d bias %d %s\n", batch, m, n, k, ta, tb, tc, mode, rows,
                errors == 0 ? "PASS" : "FAIL");
    return errors;
}
}  // namespace

int main() {
    const int m = Shape::TILE_M, n = Shape::TILE_N, k = Shape::TILE_K;
    const int sizes[][4] = {{1, 1, 1, 1}, {1, 3, 5, 0}, {0, 3, 5, 2}, {1, 0, 5, 2}, {1, 17, 19, 23}, {1, m, n, k},
                            {3, 7, 1, 65}, {2, m + 1, n + 3, k + 5}, {1, 1, 2 * n + 9, 3 * k}, {1, 2 * m - 1, 2, 9}};
    int errors = 0;
    for (const auto& s : sizes) {
        for (int bits = 0; bits < 8; ++bits) {
            errors += check(s[0], s[1], s[2], s[3], bits & 1, bits & 2, bits & 4, bits % 4 * 4, bits % 3, 1);
        }
        if (s[1] > 17 || s[3] > 65) continue;  // apart, larger ones need more memory than co-simulation has
        errors += check(s[0], s[1], s[2], s[3], false, true, false, 0, 0, 2) + check(s[0], s[1], s[2], s[3], true, false, true, 4, 1, 2);
    }
    return errors == 0 ? 0 : 1;
}
