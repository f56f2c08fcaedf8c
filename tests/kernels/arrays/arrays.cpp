// Arrays behind s_axilite: bytes, halfwords, words and doublewords, in, out and in place.
void arrays(const signed char in8[10], const short in16[6], int inout32[4], long long out64[3]) {
#pragma HLS INTERFACE s_axilite port=in8
#pragma HLS INTERFACE s_axilite port=in16
#pragma HLS INTERFACE s_axilite port=inout32
#pragma HLS INTERFACE s_axilite port=out64
#pragma HLS INTERFACE s_axilite port=return
    for (int i = 0; i < 4; ++i) inout32[i] += in8[i] + in16[i];
    for (int i = 0; i < 3; ++i) out64[i] = (static_cast<long long>(in8[i + 7]) << 40) + in16[i + 3];
}
