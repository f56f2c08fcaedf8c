// The processes that a design started (fork, system, $system of Verilog) end with its engine.
#pragma once

#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace pynq_torch {

// A process whose parent has gone, as a daemon's, becomes a child of this one.
inline void adopt_orphans() { prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); }

// Ends the children that the file of a thread lists; returns how many. Only calls that a signal
// handler may make.
inline int end_children_of(const char* thread) {
    char path[64] = "/proc/self/task/";
    std::strncat(path, thread, 24);
    std::strncat(path, "/children", 16);
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return 0;
    int found = 0;
    pid_t pid = 0;
    char text[512];
    for (ssize_t n; (n = read(fd, text, sizeof text)) > 0;) {
        for (ssize_t i = 0; i < n; ++i) {
            if (text[i] >= '0' && text[i] <= '9') {
                pid = pid * 10 + (text[i] - '0');
            } else if (pid) {
                kill(pid, SIGKILL);
                ++found;
                pid = 0;
            }
        }
    }
    close(fd);
    return found;
}

// Ends every process that descends from this one. What they started themselves becomes a child of
// this process when they have ended, and is found in the next round.
inline void end_children() {
    for (int round = 0; round < 1000; ++round) {
        const int tasks = open("/proc/self/task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (tasks < 0) return;
        int found = 0;
        alignas(8) char entries[2048];
        for (long n; (n = syscall(SYS_getdents64, tasks, entries, sizeof entries)) > 0;) {
            for (long at = 0; at < n;) {
                unsigned short length;  // struct linux_dirent64: inode, offset, length, type, name
                std::memcpy(&length, entries + at + 16, sizeof length);
                const char* name = entries + at + 19;
                if (name[0] != '.') found += end_children_of(name);
                at += length;
            }
        }
        close(tasks);
        if (!found) return;
        usleep(500);
        while (waitpid(-1, nullptr, WNOHANG) > 0) {}
    }
}

// Ends this process with all that it started.
[[noreturn]] inline void end_with_children(int status) {
    end_children();
    _exit(status);
}

}  // namespace pynq_torch
