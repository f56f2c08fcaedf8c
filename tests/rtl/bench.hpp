// What every bench here needs: a clock, a random source with a seed, checks that stop at the first
// wrong value.
#pragma once

#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>

#include "verilated.h"

double sc_time_stamp() {
    return 0;
}

[[noreturn]] inline void fail(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    std::printf("FAIL: ");
    std::vprintf(format, arguments);
    std::printf("\n");
    std::exit(1);
}

#define CHECK(condition, ...)                \
    do {                                     \
        if (!(condition)) fail(__VA_ARGS__); \
    } while (0)

class Random {
  public:
    explicit Random(uint32_t seed) : engine_(seed) {}
    uint32_t bits() { return engine_(); }
    uint32_t below(uint32_t bound) { return engine_() % bound; }
    bool chance(double probability) { return engine_() < probability * 4294967296.0; }

  private:
    std::mt19937 engine_;
};

// One model with its clock. Inputs are set, then low() settles the outputs, then high() is the edge.
template <class Model>
struct Bench {
    VerilatedContext context;
    std::unique_ptr<Model> top;
    CData* clock = nullptr;
    uint64_t cycle = 0;

    Bench() {
        context.randReset(2);  // registers without a reset start as anything
        context.randSeed(1);
        top = std::make_unique<Model>(&context);
    }
    ~Bench() { top->final(); }
    void low() {
        *clock = 0;
        top->eval();
    }
    void high() {
        *clock = 1;
        top->eval();
        context.timeInc(1);
        ++cycle;
    }
    void step() {
        low();
        high();
    }
    void reset(CData& reset_n) {
        reset_n = 0;
        for (int i = 0; i < 4; ++i) step();
        reset_n = 1;
    }
};
