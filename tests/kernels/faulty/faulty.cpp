// Does, on request, everything a kernel must not do.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

enum Sin { NOTHING, NULL_POINTER, FOR_EVER, WRITE_PAST, READ_PAST, WRITE_FAR, ABORT, THROW, DIVIDE, RECURSE, SHOUT };

static int descend(int depth) {
    volatile char block[65536];
    block[depth & 65535] = char(depth);
    return descend(depth + 1) + block[1];
}

int faulty(int *data, int n, int sin) {
#pragma HLS INTERFACE m_axi port=data bundle=gmem offset=slave
#pragma HLS INTERFACE s_axilite port=data bundle=control
#pragma HLS INTERFACE s_axilite port=n bundle=control
#pragma HLS INTERFACE s_axilite port=sin bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
    int sum = 0;
    for (int i = 0; i < n; ++i) {
        data[i] += 1;
        sum += data[i];
    }
    switch (sin) {
    case NULL_POINTER: {
        volatile int *p = nullptr;
        *p = 1;
        break;
    }
    case FOR_EVER:
        for (volatile int i = 0;; i = i + 1) {}
    case WRITE_PAST:
        data[n] = 7;
        break;
    case READ_PAST:  // one word after the other, whatever vectors this PC has
        for (int i = n; i < n + 4096; ++i) sum += *(volatile int *)&data[i];
        break;
    case WRITE_FAR:
        data[1 << 24] = 7;
        break;
    case ABORT:
        std::printf("about to abort\n");
        std::fflush(stdout);
        std::abort();
    case THROW:
        throw std::runtime_error("no such mode");
    case DIVIDE: {
        volatile int zero = n - n;
        sum /= zero;
        break;
    }
    case RECURSE:
        sum += descend(0);
        break;
    case SHOUT:
        for (int i = 0; i < 40000000 / 40; ++i) std::printf("%039d\n", i);
        break;
    default:
        break;
    }
    return sum;
}
