// Testbench of nll_f32: losses and gradients against loops in double, for every reduction.
#include "nll_f32.hpp"
#include "../../include/cosim.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

using namespace nll;

static_assert(FORWARD == 0 && BACKWARD == 1 && NONE == 0 && MEAN == 1 && SUM == 2, "the numbers that the driver writes");

struct Case { int batch, classes, inner, ignore_index, weighted, gap; };

static bool close(double found, double expected, double scale) {
    if (std::isnan(expected)) return std::isnan(found);
    return std::fabs(found - expected) <= scale * 3e-7;
}

static int check(const Case& c, int reduction) {
    const int step = 1 + c.gap;
    const size_t count = static_cast<size_t>(c.batch) * c.classes * c.inner;
    const size_t targets = static_cast<size_t>(c.batch) * c.inner;
    // A gap behind every element and every image.
    const int s_class = c.inner * step, s_image = c.classes * s_class + c.gap, t_image = c.inner * step + c.gap;
    const float guard = -12345.0f;
    std::vector<float> source(c.batch * s_image), weight(c.classes), losses(targets + 1, guard);
    std::vector<float> gradient(count + 1, guard), total(2, guard);
    std::vector<int64_t> target(c.batch * t_image);
    cosim::deepen(nll_f32_config::COSIM_DEPTH, source, weight, losses, gradient, total, target);
    for (size_t i = 0; i < source.size(); ++i) source[i] = -static_cast<float>((i * 2654435761u >> 8) % 999) / 100.0f;
    for (size_t i = 0; i < weight.size(); ++i) weight[i] = 0.25f + static_cast<float>(i % 7);
    for (size_t i = 0; i < target.size(); ++i) target[i] = static_cast<int64_t>((i / step * 40503u >> 3) % c.classes);
    target[0] = c.classes;  // no class: not to be read
    if (c.batch > 1) target[t_image] = c.ignore_index;
    if (c.batch > 2) target[2 * t_image] = -(int64_t(1) << 32);  // nor one whose low word is 0

    auto run = [&](const float* from, float* to, int op, int image, int inner) {
        nll_f32(from, target.data(), weight.data(), to, total.data(), op, reduction, c.batch, c.classes, c.inner,
            c.ignore_index, c.weighted, image, s_class, inner, t_image, step);
    };
    run(source.data(), losses.data(), FORWARD, s_image, step);
    const std::vector<float> forward_total(total);
    std::vector<float> expected_losses(losses.size(), guard);
    double sum = 0, weights = 0;
    int errors = 0;
    for (int n = 0; n < c.batch; ++n) {
        for (int s = 0; s < c.inner; ++s) {
            const int64_t t = target[n * t_image + s * step];
            const bool used = t != c.ignore_index && t >= 0 && t < c.classes;
            const double w = used ? (c.weighted ? weight[t] : 1.0f) : 0.0;
            const double loss = used ? -w * static_cast<double>(source[n * s_image + t * s_class + s * step]) : 0.0;
            sum += loss;
            weights += w;
            if (reduction == NONE) errors += !close(losses[n * c.inner + s], loss, std::fabs(loss));
        }
    }
    const size_t written = reduction == NONE ? targets : 1;
    if (reduction != NONE) errors += !close(losses[0], reduction == MEAN ? sum / weights : sum, reduction == MEAN ? sum / weights : sum);
    errors += !close(total[0], reduction == NONE ? 0 : weights, weights);
    for (size_t i = written; i < losses.size(); ++i) errors += losses[i] != guard;
    for (size_t i = 1; i < total.size(); ++i) errors += total[i] != guard;

    // The gradients of the losses lie as the losses did; those of an expanded one are all the same element.
    const int s_inner = c.batch == 3 ? 0 : step, s_outer = c.inner * s_inner + c.gap;
    std::vector<float> from(std::max(1, c.batch * s_outer));
    cosim::deepen(nll_f32_config::COSIM_DEPTH, from);
    for (size_t i = 0; i < from.size(); ++i) from[i] = 0.5f + static_cast<float>(i % 11);
    run(from.data(), gradient.data(), BACKWARD, s_outer, s_inner);
    for (size_t i = 0; i < gradient.size(); ++i) {
        const int s = static_cast<int>(i % c.inner);
        const int64_t k = static_cast<int64_t>(i / c.inner) % c.classes, n = static_cast<int64_t>(i / c.inner / c.classes);
        double expected = i < count ? 0.0 : guard;
        if (i < count && target[n * t_image + s * step] == k && k != c.ignore_index) {
            const double g = reduction == NONE ? from[n * s_outer + s * s_inner] : from[0];
            expected = -(c.weighted ? weight[k] : 1.0) * g / (reduction == MEAN ? static_cast<double>(forward_total[0]) : 1.0);
        }
        if (!close(gradient[i], expected, std::fabs(expected)) && errors++ == 0) {
            std::printf("  first wrong gradient %zu: %g, expected %g\n", i, gradient[i], expected);
        }
    }
    for (size_t i = 0; i < total.size(); ++i) errors += total[i] != forward_total[i];
    std::printf("nll_f32 %dx%dx%d reduction=%d weighted=%d %s\n", c.batch, c.classes, c.inner, reduction, c.weighted,
                errors == 0 ? "PASS" : "FAIL");
    return errors;
}

static int check_nothing() {
    int errors = 0;
    for (int none = 0; none < 3; ++none) {
        int n[] = {1, 1, 1};
        n[none] = 0;
        std::vector<float> source(1), weight(1), result(1, -1.0f), total(1, -1.0f);
        std::vector<int64_t> target(1);
        cosim::deepen(nll_f32_config::COSIM_DEPTH, source, weight, result, total, target);
        for (int op : {int(FORWARD), int(BACKWARD)}) {
            nll_f32(source.data(), target.data(), weight.data(), result.data(), total.data(), op, SUM, n[0], n[1], n[2], -100, 0,
                1, 1, 1, 1, 1);
            errors += result[0] != -1.0f || total[0] != -1.0f;
        }
    }
    std::printf("nll_f32 sizes of 0 %s\n", errors == 0 ? "PASS" : "FAIL");
    return errors;
}

int main() {
    const Case cases[] = {
        {1, 4, 3, -100, 1, 0}, {2, 1, 1, -100, 0, 0}, {7, 10, 1, 3, 0, 0}, {7, 10, 1, -100, 1, 2}, {3, 5, TILE - 1, 4, 1, 0}, {2, 3, 2 * TILE + 5, 1, 0, 1}};
    int errors = check_nothing();
    for (const Case& c : cases) for (int reduction : {int(NONE), int(MEAN), int(SUM)}) errors += check(c, reduction);
    return errors == 0 ? 0 : 1;
}
