// A compute unit of the PL by itself, on a model that the case drives: pl_bench CASE.
#include <cstdio>
#include <exception>

#include "logic_cases.hpp"

// This program is also the library that has the model.
extern "C" const pynq_torch::rtl::ModelApi* pynq_torch_model() { return &bench::hand_api(); }

int main(int argc, char** argv) {
    try {
        const std::string which = argc == 2 ? argv[1] : "";
        const auto& logic = bench::logic_cases();
        if (logic.count(which)) return logic.at(which)(), 0;
        if (argc == 2) return bench::pl_cases().at(which)(), 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 2;
}
