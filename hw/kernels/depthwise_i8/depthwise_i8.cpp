// depthwise_i8: the body is depthwise.hpp; here are the ports.
#include "depthwise_i8.hpp"

#include "../gemm/gemm_epilogue.hpp"

#include "../../include/depthwise.hpp"
#include "../../include/conv2d_requantise.hpp"

using conv2d::JOB_WORDS;
using namespace depthwise_i8_config;

void depthwise_i8(const int8_t* image, const int8_t* weight, const int32_t* bias, const float* scale,
                  int32_t* result, int8_t* steps, const int32_t* job) {
#pragma HLS INTERFACE m_axi port=image bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=weight bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=bias bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=scale bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=result bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=steps bundle=gmem3 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=job bundle=gmem2 offset=slave depth=JOB_WORDS max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=image bundle=control
#pragma HLS INTERFACE s_axilite port=weight bundle=control
#pragma HLS INTERFACE s_axilite port=bias bundle=control
#pragma HLS INTERFACE s_axilite port=scale bundle=control
#pragma HLS INTERFACE s_axilite port=result bundle=control
#pragma HLS INTERFACE s_axilite port=steps bundle=control
#pragma HLS INTERFACE s_axilite port=job bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    depthwise::convolve<Shape, conv2d::IntStore>(image, weight, conv2d::read_job(job), bias, scale, result, steps);
}
