// The function whose registers spinner.v has.
void spinner(unsigned limit) {
#pragma HLS INTERFACE s_axilite port=limit
#pragma HLS INTERFACE s_axilite port=return
}
