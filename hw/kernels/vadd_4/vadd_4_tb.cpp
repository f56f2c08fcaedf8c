// Testbench of vadd_4: what all rungs of vadd have to do, see ladder_vadd_tb.hpp.
#include "vadd_4.hpp"

#include "../../include/ladder_vadd_tb.hpp"

using vadd_4_config::Word;

// Floats as the words of the ports; the vectors of the bench start on 8 bytes and end in whole words.
static void on_floats(const float* a, const float* b, float* c, int n) {
    vadd_4(reinterpret_cast<const Word*>(a), reinterpret_cast<const Word*>(b), reinterpret_cast<Word*>(c), n);
}

int main() {
    using namespace vadd_4_config;
    return ladder::check_vadd("vadd_4", on_floats, LANES, COSIM_DEPTH * LANES);
}
