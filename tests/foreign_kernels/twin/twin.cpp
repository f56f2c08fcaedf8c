// Two slaves, two masters whose names differ only in case, arguments that differ only in case.
void twin(int *gmem, int *data, int n, int N) {
#pragma HLS INTERFACE m_axi port=gmem bundle=GMEM offset=slave
#pragma HLS INTERFACE m_axi port=data bundle=gmem offset=slave
#pragma HLS INTERFACE s_axilite port=gmem bundle=control_r
#pragma HLS INTERFACE s_axilite port=data bundle=control_r
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=N bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
    gmem[0] = n;
    data[0] = N;
}
