/* Forks in the thread that calls sched_yield, once for each time that the file which REDLATCH_FORK
   names is written with the number of that thread: a program of safe Rust has no other way to fork
   without starting another program. The child ends with the thread that it was forked from. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Is it this thread that is to fork? Other threads yield as well while they wait for a lock. */
static int is_meant(const char *path) {
    char text[32] = "";
    int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return 0;
    ssize_t size = read(file, text, sizeof text - 1);
    close(file);
    return size > 0 && atol(text) == syscall(SYS_gettid) && unlink(path) == 0;
}

int sched_yield(void) {
    const char *path = getenv("REDLATCH_FORK");
    if (!path || !is_meant(path)) return syscall(SYS_sched_yield);
    pid_t child = fork();
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child < 0 ? -1 : 0;
}
