// The sum of 0 a, 1 a, 2 a, ... in float, or least where that is more. Its RTL is an export in the
// shape of Vitis HLS's: floating-point cores by name only.
float ramp_sum(float a, float least, int n) {
#pragma HLS INTERFACE s_axilite port=a
#pragma HLS INTERFACE s_axilite port=least
#pragma HLS INTERFACE s_axilite port=n
#pragma HLS INTERFACE s_axilite port=return
    float sum = 0;
    for (int i = 0; i < n; i++) sum += static_cast<float>(i) * a;
    return sum > least ? sum : least;
}
