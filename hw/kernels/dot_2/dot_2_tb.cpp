// Testbench of dot_2: what all rungs of dot have to do, see ladder_dot_tb.hpp.
#include "dot_2.hpp"

#include "../../include/ladder_dot_tb.hpp"

int main() { return ladder::check_dot("dot_2", dot_2, 1, dot_2_config::COSIM_DEPTH); }
