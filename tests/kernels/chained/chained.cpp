// ap_ctrl_chain: ap_done stays until ap_continue.
void chained(int x, int *y) {
#pragma HLS INTERFACE s_axilite port=x
#pragma HLS INTERFACE s_axilite port=y
#pragma HLS INTERFACE s_axilite port=return
#pragma HLS INTERFACE ap_ctrl_chain port=return
    *y = x + 1;
}
