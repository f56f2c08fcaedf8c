// Kernels on the runtime of an engine process alone, nothing of HLS; KERNEL in the environment is one.
#include "../engine.hpp"

#include <functional>
#include <map>
#include <string>

using namespace pynq_torch;

namespace {

struct Words {  // a stream of 32 bits
    using pynq_torch_stream = void;
    Port* port = nullptr;
    void bind(Port* to) { port = to; }
    template <class Call> uint32_t with(uint32_t value, Call call) {
        Beat beat;
        beat.data = reinterpret_cast<unsigned char*>(&value);
        call(*port, beat);
        return value;
    }
};

struct Wide {  // as ap_uint<40>, which leaves what it is given as it is
    static constexpr int width = 40;
    uint64_t bits = 0;
    struct Part {
        uint64_t& bits;
        int high, low;
        void operator=(uint32_t word) const { bits |= uint64_t(word) << low; }
        uint32_t to_uint() const { return uint32_t(bits << (63 - high) >> (63 - high + low)); }
    };
    Part range(int high, int low) { return {bits, high, low}; }
};

Wide numbers(int8_t a, Wide b, bool c, float& f, uint8_t* kept, int32_t* table) {
    static uint8_t runs = 0;
    f = f * 2 + float(a);
    table[2] += table[0] + int32_t(b.bits >> 32) + (c ? 1000 : 0);
    *kept += ++runs;
    return {b.bits * 3};
}
void touch(uint32_t* memory, int32_t index, uint32_t value) {
    if (value) memory[index] = value;
    else std::printf("%x", memory[index]);
}
void fail(uint32_t how) {
    volatile int zero = 0;
    if (how == 0) std::printf("so far"), throw std::runtime_error("too little");
    if (how == 1) throw 5;
    if (how == 2) std::abort();
    if (how == 3) *reinterpret_cast<volatile char*>(how + 5) = 1;
    if (how == 4) std::exit(7 / zero);
    std::function<int(int)> deep = [&](int n) { volatile char room[4096] = {}; return deep(n + 1) + room[n & 7]; };
    if (how == 5) deep(0);
    if (how == 6 && fork() == 0) return;
    if (how == 8) *static_cast<volatile char*>(__builtin_alloca((256u << 20) - (512u << 10))) = 1;
    for (int mb = 0; how == 7 && mb < 20; ++mb) std::printf("%s\n", std::string((1 << 20) - 1, 'x').c_str());
}
void pass(uint32_t add, Words& in, Words& out) {
    const uint32_t value = in.with(0, [](Port& port, Beat& beat) { port.read(beat); });
    out.with(value + add, [](Port& port, Beat& beat) { port.write(beat); });
}
void nothing() {}

}  // namespace

int main(int argc, char** argv) {
    const Arg scalar{Kind::scalar}, axis{Kind::axis};
    const Arg of_numbers[] = {{Kind::scalar, 8}, {Kind::scalar, 40}, {Kind::scalar, 1}, {Kind::scalar_ptr},
                              {Kind::scalar_ptr, 8}, {Kind::memory}};
    const Arg of_touch[] = {{Kind::m_axi}, scalar, scalar}, of_pass[] = {scalar, axis, axis};
    const Arg of_fail[] = {scalar};
    const std::string kernel = std::getenv("KERNEL");
    if (kernel == "numbers") return serve(argc, argv, &numbers, of_numbers);
    if (kernel == "touch") return serve(argc, argv, &touch, of_touch);
    if (kernel == "fail") return serve(argc, argv, &fail, of_fail);
    if (kernel == "pass") return serve(argc, argv, &pass, of_pass);
    return serve(argc, argv, &nothing);
}
