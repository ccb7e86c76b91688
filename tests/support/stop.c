/* Makes SIGUSR2 stop one thread for a while, as a slow signal handler does. The file which
   REDLATCH_STOP names says which thread, and for how many milliseconds; it is removed once that
   thread has stopped. The kernel gives a signal to whichever thread of the process takes it first,
   so any other passes it on. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

static const char *path;

static void stop(int signal) {
    int before = errno;
    char text[64] = "", *end;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = file < 0 ? 0 : read(file, text, sizeof text - 1);
    if (file >= 0) close(file);
    if (size > 0) {
        long thread = strtol(text, &end, 10), milliseconds = strtol(end, NULL, 10);
        if (thread != syscall(SYS_gettid)) {
            syscall(SYS_tgkill, getpid(), thread, signal);
        } else if (unlink(path) == 0) {
            struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
            while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
        }
    }
    errno = before;
}

__attribute__((constructor)) static void install(void) {
    path = getenv("REDLATCH_STOP");
    if (!path) return;
    struct sigaction action = {0};
    action.sa_handler = stop;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR2, &action, 0);
}
