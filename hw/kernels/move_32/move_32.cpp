// move_32: the words of one strided operand to another, with or without an index.
#include "move_32.hpp"

using namespace move_32_config;

void move_32(const int* src, const int* index, int* dst,
             int op, int n0, int n1, int n2, int n3, int s0, int s1, int s2, int s3,
             int x0, int x1, int x2, int x3, int d0, int d1, int d2, int d3, int step,
             int skip) {
#pragma HLS INTERFACE m_axi port=src bundle=gmem0 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=index bundle=gmem1 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST num_read_outstanding=OUTSTANDING
#pragma HLS INTERFACE m_axi port=dst bundle=gmem2 offset=slave depth=COSIM_DEPTH max_read_burst_length=BURST max_write_burst_length=BURST num_read_outstanding=OUTSTANDING num_write_outstanding=OUTSTANDING
#pragma HLS INTERFACE s_axilite port=src bundle=control
#pragma HLS INTERFACE s_axilite port=index bundle=control
#pragma HLS INTERFACE s_axilite port=dst bundle=control
#pragma HLS INTERFACE s_axilite port=op bundle=control
#pragma HLS INTERFACE s_axilite port=n0 bundle=control
#pragma HLS INTERFACE s_axilite port=n1 bundle=control
#pragma HLS INTERFACE s_axilite port=n2 bundle=control
#pragma HLS INTERFACE s_axilite port=n3 bundle=control
#pragma HLS INTERFACE s_axilite port=s0 bundle=control
#pragma HLS INTERFACE s_axilite port=s1 bundle=control
#pragma HLS INTERFACE s_axilite port=s2 bundle=control
#pragma HLS INTERFACE s_axilite port=s3 bundle=control
#pragma HLS INTERFACE s_axilite port=x0 bundle=control
#pragma HLS INTERFACE s_axilite port=x1 bundle=control
#pragma HLS INTERFACE s_axilite port=x2 bundle=control
#pragma HLS INTERFACE s_axilite port=x3 bundle=control
#pragma HLS INTERFACE s_axilite port=d0 bundle=control
#pragma HLS INTERFACE s_axilite port=d1 bundle=control
#pragma HLS INTERFACE s_axilite port=d2 bundle=control
#pragma HLS INTERFACE s_axilite port=d3 bundle=control
#pragma HLS INTERFACE s_axilite port=step bundle=control
#pragma HLS INTERFACE s_axilite port=skip bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return

    const move::Walk walk = {
        {n0, n1, n2, n3}, {s0, s1, s2, s3}, {x0, x1, x2, x3}, {d0, d1, d2, d3}, step, skip,
    };
    move::run<Table>(src, index, dst, op, walk);
}
