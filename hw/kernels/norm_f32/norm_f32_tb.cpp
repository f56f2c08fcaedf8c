// Testbench of norm_f32: batches and layers against loops in double, within the roundings that norm.hpp states.
#include "norm_f32.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using namespace norm;

struct Case { int op, outer, channels, inner, affine, gap; double offset; };

static const double ULP = 1.0 / 8388608;

static int check(const Case& c) {
    const int depth = norm_f32_config::COSIM_DEPTH, step = 1 + c.gap;
    const size_t count = static_cast<size_t>(c.outer) * c.channels * c.inner;
    const int vectors = c.op == LAYER ? c.inner : c.channels;
    const float eps = 1e-5f, guard = -12345.0f;
    std::vector<float> source(count * step + depth), result(count + depth, guard), mean(c.outer + c.channels + depth, guard);
    std::vector<float> variance(mean), weight(vectors + depth), bias(vectors + depth);
    for (size_t i = 0; i < source.size(); ++i) source[i] = static_cast<float>(c.offset + (i * 2654435761u >> 8) % 999 / 250.0);
    for (size_t i = 0; i < weight.size(); ++i) {
        weight[i] = 0.5f + static_cast<float>(i % 13) / 8.0f;
        bias[i] = static_cast<float>(i % 7) - 3.0f;
    }
    if (c.op == BATCH) {
        for (int k = 0; k < c.channels; ++k) {
            mean[k] = static_cast<float>(c.offset + k % 5 / 3.0);
            variance[k] = 0.01f + static_cast<float>(k % 11);
        }
    }
    norm_f32(source.data(), mean.data(), variance.data(), weight.data(), bias.data(), result.data(), c.op, c.outer,
        c.channels, c.inner, c.affine, eps, c.channels * c.inner * step, c.inner * step, step, c.channels * c.inner, c.inner, 1);
    int errors = 0;
    for (int n = 0; n < c.outer; ++n) {
        for (int k = 0; k < c.channels; ++k) {
            const size_t first = (static_cast<size_t>(n) * c.channels + k) * c.inner;
            double average = mean[k], spread = variance[k];
            if (c.op == LAYER) {
                average = spread = 0;
                for (int s = 0; s < c.inner; ++s) average += source[(first + s) * step];
                average /= c.inner;
                for (int s = 0; s < c.inner; ++s) spread += std::pow(source[(first + s) * step] - average, 2);
                spread /= c.inner;
            }
            const double factor = 1 / std::sqrt(spread + static_cast<double>(eps));
            if (c.op == LAYER) {
                errors += std::fabs(mean[n] - average) > ULP * std::fabs(average) || std::fabs(variance[n] - factor) > 3 * ULP * factor;
            }
            for (int s = 0; s < c.inner; ++s) {
                const int v = c.op == LAYER ? s : k;
                double expected = (source[(first + s) * step] - average) * factor * (c.affine & WEIGHT ? weight[v] : 1.0f);
                double bound = 7 * std::fabs(expected);
                if (c.affine & BIAS) expected += bias[v];
                bound = (bound + std::fabs(expected)) * ULP / 2 + 1e-12;
                if (!(std::fabs(result[first + s] - expected) <= bound) && errors++ == 0) {
                    std::printf("  first wrong element %zu: %.9g, expected %.9g\n", first + s, result[first + s], expected);
                }
            }
        }
    }
    for (size_t i = count; i < result.size(); ++i) errors += result[i] != guard;
    const size_t written = c.op == LAYER ? c.outer : c.channels;
    for (size_t i = written; i < mean.size(); ++i) errors += mean[i] != guard || variance[i] != guard;
    std::printf("norm_f32 op=%d %dx%dx%d affine=%d %s\n", c.op, c.outer, c.channels, c.inner, c.affine, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    const Case cases[] = {
        {BATCH, 1, 1, 1, 0, 0, 0}, {BATCH, 3, 5, 77, 3, 2, 100}, {BATCH, 2, CHANNELS + 3, 1, 1, 0, -1}, {BATCH, 3, 7, TILE, 2, 1, 0},
        {LAYER, 3, 1, 1, 3, 0, 0}, {LAYER, 5, 1, 77, 3, 1, 1000}, {LAYER, 2, 1, ROW, 0, 0, -3}, {LAYER, 2, 1, 2 * ROW + 5, 2, 0, 10}};
    int errors = 0;
    for (const Case& c : cases) errors += check(c);
    return errors == 0 ? 0 : 1;
}
