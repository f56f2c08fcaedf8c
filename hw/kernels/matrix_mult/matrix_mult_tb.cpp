// Testbench of matrix_mult.
#include "matrix_mult.hpp"

#include "matrix_mult_tb_common.hpp"

int main() { return matrix_mult_tb::check_all("matrix_mult", matrix_mult) == 0 ? 0 : 1; }
