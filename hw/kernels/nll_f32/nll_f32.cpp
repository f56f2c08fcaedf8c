// nll_f32: the ports; the work is in ../../include/nll.hpp.
#include "nll_f32.hpp"

using namespace nll_f32_config;
using namespace nll;

void nll_f32(const float* source, const int64_t* target, const float* weight, float* result, float* total,
             int op, int reduction, int batch, int classes, int inner, int ignore_index, int weighted,
             int source_image, int source_class, int source_inner, int target_image, int target_inner) {
#pragma HLS INTERFACE m_axi port=source bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE m_axi port=target bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE m_axi port=weight bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE m_axi port=result bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE m_axi port=total bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE s_axilite port=source bundle=control
#pragma HLS INTERFACE s_axilite port=target bundle=control
#pragma HLS INTERFACE s_axilite port=weight bundle=control
#pragma HLS INTERFACE s_axilite port=result bundle=control
#pragma HLS INTERFACE s_axilite port=total bundle=control
#pragma HLS INTERFACE s_axilite port=op bundle=control
#pragma HLS INTERFACE s_axilite port=reduction bundle=control
#pragma HLS INTERFACE s_axilite port=batch bundle=control
#pragma HLS INTERFACE s_axilite port=classes bundle=control
#pragma HLS INTERFACE s_axilite port=inner bundle=control
#pragma HLS INTERFACE s_axilite port=ignore_index bundle=control
#pragma HLS INTERFACE s_axilite port=weighted bundle=control
#pragma HLS INTERFACE s_axilite port=source_image bundle=control
#pragma HLS INTERFACE s_axilite port=source_class bundle=control
#pragma HLS INTERFACE s_axilite port=source_inner bundle=control
#pragma HLS INTERFACE s_axilite port=target_image bundle=control
#pragma HLS INTERFACE s_axilite port=target_inner bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
// Both directions are inlined here, and never run together: they share their operators.
#pragma HLS ALLOCATION operation instances=dadd limit=1
#pragma HLS ALLOCATION operation instances=fmul limit=1
#pragma HLS ALLOCATION operation instances=fdiv limit=1
#pragma HLS ALLOCATION operation instances=mul limit=2

    const Sizes sizes = {batch, classes, inner};
    const Strides from = {source_image, source_class, source_inner};
    const Strides targets = {target_image, 0, target_inner};
    const Rule rule = {reduction, ignore_index, weighted};
    if (batch <= 0 || classes <= 0 || inner <= 0) return;
    if (op == FORWARD) {
        forward(source, target, weight, result, total, sizes, from, targets, rule);
    } else if (op == BACKWARD) {
        backward(source, target, weight, result, total, sizes, from, targets, rule);
    }
}
