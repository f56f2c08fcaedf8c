// Testbench of dot_1: what all rungs of dot have to do, see ladder_dot_tb.hpp.
#include "dot_1.hpp"

#include "../../include/ladder_dot_tb.hpp"

int main() { return ladder::check_dot("dot_1", dot_1, 1, dot_1_config::COSIM_DEPTH); }
