// Testbench of gemm.
#include "gemm.hpp"

#include "gemm_tb_common.hpp"

int main() {
    using namespace gemm_config;
    const int errors = gemm_tb::check_all<Shape>("gemm", gemm, COSIM_DEPTH, COSIM_COLUMNS);
    return errors == 0 ? 0 : 1;
}
