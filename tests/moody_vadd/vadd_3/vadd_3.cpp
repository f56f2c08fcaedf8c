// vadd_3 by its registers, which misbehaves where the first element of its part of `a` says so.
#include <unistd.h>

void vadd_3(const float* a, const float* b, float* c, int n) {
#pragma HLS INTERFACE m_axi port=a bundle=gmem0 offset=slave
#pragma HLS INTERFACE m_axi port=b bundle=gmem1 offset=slave
#pragma HLS INTERFACE m_axi port=c bundle=gmem0 offset=slave
#pragma HLS INTERFACE s_axilite port=a bundle=control
#pragma HLS INTERFACE s_axilite port=b bundle=control
#pragma HLS INTERFACE s_axilite port=c bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
#pragma HLS INTERFACE ap_ctrl_hs port=return
    const float mood = a[0];
    for (int i = 0; i < n; ++i) {
        c[i] = a[i] + b[i];
        if (i == n / 2 && mood == 101.0f) *reinterpret_cast<volatile int*>(8) = 1;  // crash
        for (volatile bool on = i == n / 2 && mood == 102.0f; on;) {                // hang
        }
        if (i == n / 2 && mood == 103.0f) usleep(300000);  // dawdle
    }
}
