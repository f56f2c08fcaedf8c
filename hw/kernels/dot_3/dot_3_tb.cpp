// Testbench of dot_3: what all rungs of dot have to do, see ladder_dot_tb.hpp.
#include "dot_3.hpp"

#include "../../include/ladder_dot_tb.hpp"

int main() { return ladder::check_dot("dot_3", dot_3, 1, dot_3_config::COSIM_DEPTH); }
