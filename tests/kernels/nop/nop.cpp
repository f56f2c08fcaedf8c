// nop: a kernel that does nothing, to measure what a start and a wait cost by themselves.
void nop(int value) {
#pragma HLS INTERFACE s_axilite port=value bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    (void)value;
}
