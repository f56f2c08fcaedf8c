// depthwise_f32: the body is depthwise.hpp; here are the ports.
#include "depthwise_f32.hpp"

#include "../../include/depthwise.hpp"
#include "../../include/conv2d_store.hpp"

using conv2d::JOB_WORDS;
using namespace depthwise_f32_config;

void depthwise_f32(const float* image, const float* weight, const float* bias, float* result,
                   const int32_t* job) {
#pragma HLS INTERFACE m_axi port=image bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=weight bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=bias bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=result bundle=gmem2 offset=slave depth=COSIM_DEPTH max_write_burst_length=BURST num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=job bundle=gmem1 offset=slave depth=JOB_WORDS max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=image bundle=control
#pragma HLS INTERFACE s_axilite port=weight bundle=control
#pragma HLS INTERFACE s_axilite port=bias bundle=control
#pragma HLS INTERFACE s_axilite port=result bundle=control
#pragma HLS INTERFACE s_axilite port=job bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    depthwise::convolve<Shape, conv2d::FloatStore>(image, weight, conv2d::read_job(job), bias, result);
}
