// Testbench of gemm_lut.
#include "gemm_lut.hpp"

#include "../gemm/gemm_tb_common.hpp"

int main() {
    using namespace gemm_lut_config;
    const int errors = gemm_tb::check_all<Shape>("gemm_lut", gemm_lut, COSIM_DEPTH, COSIM_COLUMNS);
    return errors == 0 ? 0 : 1;
}
