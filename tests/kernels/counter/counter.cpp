// Counts its own runs: for auto-restart, threads and reset.
void counter(int step, int *total) {
#pragma HLS INTERFACE s_axilite port=step
#pragma HLS INTERFACE s_axilite port=total
#pragma HLS INTERFACE s_axilite port=return
    static int sum = 0;
    sum += step;
    *total = sum;
}
