// Testbench of norm_f32: batches and layers against loops in double, within the roundings that norm.hpp states.
#include "norm_f32.hpp"
#include "../../include/cosim.hpp"

#include <cmath>
#include <cstdio>
#include <vector>

using namespace norm;

static_assert(BATCH == 0 && LAYER == 1 && WEIGHT == 1 && BIAS == 2, "the numbers that the driver writes");

struct Case { int op, outer, channels, inner, affine, gaps; double offset; };

static const double ULP = 1.0 / 8388608;

// Gaps behind elements (1), channels (2) and samples (4).
static Strides strides(const Case& c, int gap) {
    const int inner = c.gaps & 1 ? 1 + gap : 1, channel = c.inner * inner + (c.gaps & 2 ? gap : 0);
    return {c.channels * channel + (c.gaps & 4 ? gap : 0), channel, inner};
}

static int check(const Case& c) {
    const Strides from = strides(c, 1), to = strides(c, 2);
    const int vectors = c.op == LAYER ? c.inner : c.channels, written = c.op == LAYER ? c.outer : c.channels;
    const float eps = 1e-5f, guard = -12345.0f;
    std::vector<float> source(c.outer * from.outer), result(c.outer * to.outer + 1, guard), mean(written + 1, guard);
    std::vector<float> variance(mean), weight(vectors), bias(vectors);
    cosim::deepen(norm_f32_config::COSIM_DEPTH, source, result, mean, variance, weight, bias);
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
        c.channels, c.inner, c.affine, eps, from.outer, from.channel, from.inner, to.outer, to.channel, to.inner);
    int errors = 0;
    const bool nothing = c.outer * c.channels * c.inner == 0;
    for (int n = 0; !nothing && n < c.outer; ++n) {
        for (int k = 0; k < c.channels; ++k) {
            const size_t first = n * from.outer + k * from.channel, place = n * to.outer + k * to.channel;
            double average = mean[k], spread = variance[k];
            if (c.op == LAYER) {
                average = spread = 0;
                for (int s = 0; s < c.inner; ++s) average += source[first + s * from.inner];
                average /= c.inner;
                for (int s = 0; s < c.inner; ++s) spread += std::pow(source[first + s * from.inner] - average, 2);
                spread /= c.inner;
            }
            const double factor = 1 / std::sqrt(spread + static_cast<double>(eps));
            if (c.op == LAYER) {
                errors += std::fabs(mean[n] - average) > ULP * std::fabs(average) || std::fabs(variance[n] - factor) > 3 * ULP * factor;
            }
            for (int s = 0; s < c.inner; ++s) {
                const int v = c.op == LAYER ? s : k;
                double expected = (source[first + s * from.inner] - average) * factor * (c.affine & WEIGHT ? weight[v] : 1.0f);
                double bound = 7 * std::fabs(expected);
                if (c.affine & BIAS) expected += bias[v];
                bound = (bound + std::fabs(expected)) * ULP / 2 + 1e-12;
                float& found = result[place + s * to.inner];
                if (!(std::fabs(found - expected) <= bound) && errors++ == 0) {
                    std::printf("  first wrong element [%d][%d][%d]: %.9g, expected %.9g\n", n, k, s, found, expected);
                }
                found = guard;
            }
        }
    }
    for (float value : result) errors += value != guard;
    for (int n = 0; nothing && c.op == LAYER && n < written; ++n) errors += mean[n] != guard || variance[n] != guard;
    errors += mean[written] != guard || variance[written] != guard;
    std::printf("norm_f32 op=%d %dx%dx%d affine=%d %s\n", c.op, c.outer, c.channels, c.inner, c.affine, errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    const Case cases[] = {
        {BATCH, 1, 1, 1, 0, 0, 0}, {BATCH, 3, 5, 77, 3, 7, 100}, {BATCH, 2, CHANNELS + 3, 1, 1, 0, -1}, {BATCH, 3, 7, TILE, 2, 1, 0},
        {BATCH, 5, 5, TILE / 25 + 1, 3, 0, 5}, {BATCH, 2, 3, 500, 3, 0, 5}, {BATCH, 2, 3, 500, 0, 2, 5}, {BATCH, 3, 3, 250, 0, 4, 5}, {BATCH, 2, CHANNELS + 1, 3, 3, 0, 0},
        {LAYER, 3, 1, 1, 3, 0, 0}, {LAYER, 5, 1, 77, 3, 7, 1000}, {LAYER, 2, 1, ROW, 0, 4, -3}, {LAYER, 2, 1, 2 * ROW + 5, 2, 0, 10},
        {LAYER, 2, 1, ROW + 1, 3, 1, 10}, {BATCH, 0, 2, 3, 3, 0, 0}, {BATCH, 2, 0, 3, 3, 0, 0}, {BATCH, 2, 3, 0, 3, 0, 0},
        {LAYER, 2, 0, 3, 3, 0, 0}, {LAYER, 2, 1, 0, 3, 0, 0}};
    int errors = 0;
    for (const Case& c : cases) errors += check(c);
    return errors == 0 ? 0 : 1;
}
