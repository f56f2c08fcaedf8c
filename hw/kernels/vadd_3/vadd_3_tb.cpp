// Testbench of vadd_3: what all rungs of vadd have to do, see ladder_vadd_tb.hpp.
#include "vadd_3.hpp"

#include "../../include/ladder_vadd_tb.hpp"

int main() { return ladder::check_vadd("vadd_3", vadd_3, 1, vadd_3_config::COSIM_DEPTH); }
