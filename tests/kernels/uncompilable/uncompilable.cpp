void uncompilable(int n, int *out) {
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=out
#pragma HLS INTERFACE s_axilite port=return
    *out = n + undeclared_name;
}
