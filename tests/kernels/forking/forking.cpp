// Starts processes of its own, in every way that a kernel can.
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

enum How { NOTHING, FORK, SHELL, DAEMON, COMES_BACK, DAEMON_AND_CRASH, FORK_AND_EXIT };

static void sleep_for(int seconds) {
    char text[32];
    std::snprintf(text, sizeof text, "%d", seconds);
    execlp("sleep", "sleep", text, static_cast<char *>(nullptr));
    _exit(1);
}

static void start_daemon(int seconds) {
    if (fork() == 0) {
        setsid();
        if (fork() == 0) sleep_for(seconds);
        _exit(0);
    }
}

int forking(int how, int seconds) {
#pragma HLS INTERFACE s_axilite port=how bundle=control
#pragma HLS INTERFACE s_axilite port=seconds bundle=control
#pragma HLS INTERFACE s_axilite port=return bundle=control
    char text[64];
    switch (how) {
    case FORK:
        if (fork() == 0) sleep_for(seconds);
        break;
    case SHELL:
        std::snprintf(text, sizeof text, "sleep %d &", seconds);
        return std::system(text);
    case DAEMON:
        start_daemon(seconds);
        break;
    case COMES_BACK:
        return fork() == 0 ? 1 : 2;
    case DAEMON_AND_CRASH: {
        start_daemon(seconds);
        volatile int *p = nullptr;
        *p = 1;
        break;
    }
    case FORK_AND_EXIT:
        if (fork() == 0) sleep_for(seconds);
        std::exit(3);
    }
    return how;
}
