// WaveRecorder on a model that is no more than a counter: which cycles come into which file.
//
// waves_bench CYCLES STARTS HISTORY [name=value ...]; STARTS is a list like 10,40. A start lasts six
// cycles, ap_done is high in the last of them. "Waves" are lines of text: the time, the clock edges
// that the model has seen, and the sum of what its input was at them.
//
// waves_bench lz4: the bound of the compressed size, a line, and the compressed standard input.
#include <cstdlib>
#include <cstring>
#include <set>
#include <sstream>

#include "compat/lz4.h"
#include "waves.hpp"

namespace pynq_torch {
namespace rtl {

struct Model {
    uint8_t clk = 0, last = 0, input = 0, start = 0, done = 0;
    uint32_t data[4] = {0, 0, 0, 0};  // wider than 64 bits
    uint64_t edges = 0, sum = 0;
    FILE* file = nullptr;
    std::string why;
    Signal signals[5] = {{"ap_clk", &clk, 1, kInput},
                         {"go", &input, 1, kInput},
                         {"data", data, 100, kInput},
                         {".ap_start", &start, 1, kNet},
                         {".ap_done", &done, 1, kNet}};
};

namespace {

Model* create(uint32_t, uint32_t) { return new Model; }
void destroy(Model* m) { delete m; }
int eval(Model* m) {
    if (m->clk && !m->last) {
        m->edges += 1;
        m->sum += m->input + m->data[3];
    }
    m->last = m->clk;
    m->start = m->input;
    m->done = m->input && m->data[0] == 5;
    return 0;
}
const char* error(Model* m) { return m->why.c_str(); }
size_t signals(Model* m, const Signal** out) {
    *out = m->signals;
    return 5;
}
int wave_open(Model* m, const char* path) {
    m->file = std::fopen(path, "w");
    return m->file == nullptr;
}
void wave_dump(Model* m, uint64_t time) {
    std::fprintf(m->file, "%llu %llu %llu\n", (unsigned long long)time,
                 (unsigned long long)m->edges, (unsigned long long)m->sum);
}
void wave_flush(Model* m) { std::fflush(m->file); }
void wave_close(Model* m) {
    std::fclose(m->file);
    m->file = nullptr;
}

constexpr ModelApi kWith = {kModelVersion, create,    destroy,   eval,       error,
                            signals,       wave_open, wave_dump, wave_flush, wave_close, nullptr};
constexpr ModelApi kWithout = {kModelVersion, create,  destroy, eval,    error,
                               signals,       nullptr, nullptr, nullptr, nullptr, nullptr};

}  // namespace
}  // namespace rtl
}  // namespace pynq_torch

static int compress() {
    std::vector<char> in, out;
    for (int c; (c = std::getchar()) != EOF;) in.push_back(char(c));
    const int nbytes = int(in.size()), bound = LZ4_compressBound(nbytes);
    out.resize(size_t(bound));
    in.shrink_to_fit();  // a byte read behind it is an error
    const int made = LZ4_compress_default(in.data(), out.data(), nbytes, bound);
    std::printf("%d\n", bound);
    std::fwrite(out.data(), 1, size_t(made), stdout);
    return 0;
}

int main(int argc, char** argv) {
    using namespace pynq_torch::rtl;
    if (argc == 2 && std::strcmp(argv[1], "lz4") == 0) return compress();
    const uint64_t cycles = std::strtoull(argv[1], nullptr, 10);
    std::set<uint64_t> starts;
    std::stringstream list(argv[2]);
    for (std::string item; std::getline(list, item, ',');) starts.insert(std::stoull(item));
    const uint32_t history = uint32_t(std::atoi(argv[3]));
    WaveBox box{};
    box.to_cycle = box.limit_bytes = kNever;
    box.period_ps = 10;
    uint64_t close_at = kNever, again_at = kNever;
    uint32_t again_before = 0;
    bool with = true;
    for (int i = 4; i < argc; ++i) {
        const std::string word = argv[i];
        const size_t at = word.find('=');
        const std::string name = word.substr(0, at), value = word.substr(at + 1);
        const uint64_t number = std::strtoull(value.c_str(), nullptr, 10);
        if (name == "before") box.before = uint32_t(number);
        if (name == "after") box.after = uint32_t(number);
        if (name == "each") box.each = uint32_t(number);
        if (name == "from") box.from_cycle = number;
        if (name == "to") box.to_cycle = number;
        if (name == "limit") box.limit_bytes = number;
        if (name == "start") std::strcpy(box.start, value.c_str());
        if (name == "stop") std::strcpy(box.stop, value.c_str());
        if (name == "path") std::strcpy(box.path, value.c_str());
        if (name == "close") close_at = number;
        if (name == "again") again_at = number;
        if (name == "again_before") again_before = uint32_t(number);
        if (name == "with") with = number != 0;
    }
    const ModelApi& api = with ? kWith : kWithout;
    Model* model = api.create(0, kZeros);
    auto recorder = std::make_unique<WaveRecorder>(api, model, &box, history, 0, kZeros);
    box.command = uint32_t(WaveCommand::kOpen);
    box.request = 1;
    uint64_t begun = kNever;
    for (uint64_t cycle = 0; cycle < cycles; ++cycle) {
        if (cycle == close_at) {
            box.command = uint32_t(WaveCommand::kClose);
            box.request += 1;
        }
        if (cycle == again_at) {
            box.command = uint32_t(WaveCommand::kOpen), box.before = again_before;
            box.request += 1;
        }
        if (starts.count(cycle)) begun = cycle;
        if (begun != kNever && cycle - begun >= 6) begun = kNever;
        model->input = begun != kNever;
        model->data[0] = begun != kNever ? uint32_t(cycle - begun) : 0;
        model->data[3] = uint32_t(cycle % 7);
        model->clk = 0;
        api.eval(model);
        recorder->low(cycle);
        model->clk = 1;
        api.eval(model);
        recorder->high(cycle);
    }
    box.command = uint32_t(WaveCommand::kClose);
    box.request += 1;
    recorder->poll();
    std::printf("%u %u %llu %llu %llu %llu %u\n%s\n", box.state, box.files,
                (unsigned long long)box.first_cycle, (unsigned long long)box.last_cycle,
                (unsigned long long)box.trigger_cycle, (unsigned long long)box.bytes,
                unsigned(box.answer == box.request), box.error);
    recorder.reset();
    api.destroy(model);
    return 0;
}
