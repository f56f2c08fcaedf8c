// Copies a word; its RTL also does, on request, what a design must not do.
void culprit(const unsigned *source, unsigned *target, unsigned sin) {
#pragma HLS INTERFACE m_axi port=source bundle=gmem offset=slave
#pragma HLS INTERFACE m_axi port=target bundle=gmem offset=slave
#pragma HLS INTERFACE s_axilite port=source bundle=control
#pragma HLS INTERFACE s_axilite port=target bundle=control
#pragma HLS INTERFACE s_axilite port=sin bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
    if (sin == 0) target[0] = source[0];
}
