// Testbench of vadd_2: what all rungs of vadd have to do, see ladder_vadd_tb.hpp.
#include "vadd_2.hpp"

#include "../../include/ladder_vadd_tb.hpp"

int main() { return ladder::check_vadd("vadd_2", vadd_2, 1, vadd_2_config::COSIM_DEPTH); }
