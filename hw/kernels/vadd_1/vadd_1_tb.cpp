// Testbench of vadd_1: what all rungs of vadd have to do, see ladder_vadd_tb.hpp.
#include "vadd_1.hpp"

#include "../../include/ladder_vadd_tb.hpp"

int main() { return ladder::check_vadd("vadd_1", vadd_1, 1, vadd_1_config::COSIM_DEPTH); }
