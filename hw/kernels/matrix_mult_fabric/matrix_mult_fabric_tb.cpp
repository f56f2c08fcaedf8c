// Testbench of matrix_mult_fabric.
#include "matrix_mult_fabric.hpp"

#include "../matrix_mult/matrix_mult_tb_common.hpp"

int main() { return matrix_mult_tb::check_all("matrix_mult_fabric", matrix_mult_fabric) == 0 ? 0 : 1; }
