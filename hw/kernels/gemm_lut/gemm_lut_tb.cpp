// Testbench of gemm_lut.
#include "gemm_lut.hpp"

#include "../gemm/gemm_tb_common.hpp"

int main() {
    const int errors = gemm_tb::check_all<gemm_lut_config::Shape>("gemm_lut", gemm_lut, gemm_lut_config::COSIM_DEPTH);
    return errors == 0 ? 0 : 1;
}
