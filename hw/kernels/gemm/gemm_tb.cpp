// Testbench of gemm.
#include "gemm.hpp"

#include "gemm_tb_common.hpp"

int main() {
    const int errors = gemm_tb::check_all<gemm_config::Shape>("gemm", gemm, gemm_config::COSIM_DEPTH);
    return errors == 0 ? 0 : 1;
}
