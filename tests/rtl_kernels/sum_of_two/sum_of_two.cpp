// Its RTL is VHDL: registers only, the sum a few cycles after the start.
void sum_of_two(int a, int b, int *sum) {
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=sum bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
    *sum = a + b;
}
