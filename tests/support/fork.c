/* Forks in the thread that calls sched_yield, once, when the file exists that REDLATCH_FORK names: a
   program of safe Rust has no other way to fork without starting another program. The child ends
   with its parent. */
#define _GNU_SOURCE
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

int sched_yield(void) {
    static int is_done;
    const char *path = getenv("REDLATCH_FORK");
    if (is_done || !path || access(path, F_OK) != 0) return syscall(SYS_sched_yield);
    is_done = 1;
    pid_t child = fork();
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child < 0 ? -1 : 0;
}
