// norm_f32: the ports; the work is in ../../include/norm_batch.hpp and norm_layer.hpp.
#include "norm_f32.hpp"

#include "../../include/norm_batch.hpp"
#include "../../include/norm_layer.hpp"

using namespace norm_f32_config;
using namespace norm;

void norm_f32(const float* source, float* mean, float* variance, const float* weight, const float* bias, float* result,
              int op, int outer, int channels, int inner, int affine, float eps,
              int source_outer, int source_channel, int source_inner,
              int result_outer, int result_channel, int result_inner) {
#pragma HLS INTERFACE m_axi port=source bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE m_axi port=mean bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE m_axi port=variance bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE m_axi port=weight bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE m_axi port=bias bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE m_axi port=result bundle=gmem3 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING max_write_burst_length=BURST
#pragma HLS INTERFACE s_axilite port=source bundle=control
#pragma HLS INTERFACE s_axilite port=mean bundle=control
#pragma HLS INTERFACE s_axilite port=variance bundle=control
#pragma HLS INTERFACE s_axilite port=weight bundle=control
#pragma HLS INTERFACE s_axilite port=bias bundle=control
#pragma HLS INTERFACE s_axilite port=result bundle=control
#pragma HLS INTERFACE s_axilite port=op bundle=control
#pragma HLS INTERFACE s_axilite port=outer bundle=control
#pragma HLS INTERFACE s_axilite port=channels bundle=control
#pragma HLS INTERFACE s_axilite port=inner bundle=control
#pragma HLS INTERFACE s_axilite port=affine bundle=control
#pragma HLS INTERFACE s_axilite port=eps bundle=control
#pragma HLS INTERFACE s_axilite port=source_outer bundle=control
#pragma HLS INTERFACE s_axilite port=source_channel bundle=control
#pragma HLS INTERFACE s_axilite port=source_inner bundle=control
#pragma HLS INTERFACE s_axilite port=result_outer bundle=control
#pragma HLS INTERFACE s_axilite port=result_channel bundle=control
#pragma HLS INTERFACE s_axilite port=result_inner bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
// No loop of a pipeline multiplies integers: what is left can share multipliers.
#pragma HLS ALLOCATION operation instances=mul limit=4

    const Strides from = {source_outer, source_channel, source_inner};
    const Strides to = {result_outer, result_channel, result_inner};
    if (outer <= 0 || channels <= 0 || inner <= 0) return;
    if (op == BATCH) {
        batch(source, mean, variance, weight, bias, result, outer, channels, inner, affine, eps, from, to);
    } else if (op == LAYER) {
        layer(source, mean, variance, weight, bias, result, outer, inner, affine, eps, from, to);
    }
}
