// Every kind of scalar through registers, so that the register file's packing is tested.
#include "ap_fixed.h"
#include "ap_int.h"
#include "hls_half.h"

double scalars(bool flag, signed char c, unsigned short s, int i, long long l, float f, double d, half h,
               ap_int<5> a5, ap_uint<33> a33, ap_uint<100> a100, ap_fixed<12, 4> x, ap_uint<100> *o100,
               ap_int<5> *o5, half *oh, float &of, bool *ob, int *io) {
#pragma HLS INTERFACE s_axilite port=flag
#pragma HLS INTERFACE s_axilite port=c
#pragma HLS INTERFACE s_axilite port=s
#pragma HLS INTERFACE s_axilite port=i
#pragma HLS INTERFACE s_axilite port=l
#pragma HLS INTERFACE s_axilite port=f
#pragma HLS INTERFACE s_axilite port=d
#pragma HLS INTERFACE s_axilite port=h
#pragma HLS INTERFACE s_axilite port=a5
#pragma HLS INTERFACE s_axilite port=a33
#pragma HLS INTERFACE s_axilite port=a100
#pragma HLS INTERFACE s_axilite port=x
#pragma HLS INTERFACE s_axilite port=o100
#pragma HLS INTERFACE s_axilite port=o5
#pragma HLS INTERFACE s_axilite port=oh
#pragma HLS INTERFACE s_axilite port=of
#pragma HLS INTERFACE s_axilite port=ob
#pragma HLS INTERFACE s_axilite port=io
#pragma HLS INTERFACE s_axilite port=return
    *o100 = a100 + 1;
    *o5 = -a5;
    *oh = h + h;
    of = f * 2;
    *ob = !flag;
    *io = *io * 3;
    return double(c) + s + i + double(l) + f + d + double(float(h)) + a5.to_int() + a33.to_double() +
           x.to_double();
}
