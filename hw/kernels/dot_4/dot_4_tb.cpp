// Testbench of dot_4: what all rungs of dot have to do, see ladder_dot_tb.hpp.
#include "dot_4.hpp"

#include "../../include/ladder_dot_tb.hpp"

using dot_4_config::Word;

// Floats as the words of the ports; the vectors of the bench start on 8 bytes and end in whole words.
static void on_floats(const float* a, const float* b, float* c, int n) {
    dot_4(reinterpret_cast<const Word*>(a), reinterpret_cast<const Word*>(b), c, n);
}

int main() {
    using namespace dot_4_config;
    return ladder::check_dot("dot_4", on_floats, LANES, COSIM_DEPTH * LANES);
}
