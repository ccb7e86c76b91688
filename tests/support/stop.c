/* Makes SIGUSR2 stop the thread that receives it for as many milliseconds as REDLATCH_STOP says, as a
   slow signal handler does. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <time.h>

static long milliseconds;

static void stop(int signal) {
    (void)signal;
    int before = errno;
    struct timespec left = {milliseconds / 1000, milliseconds % 1000 * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
    errno = before;
}

__attribute__((constructor)) static void install(void) {
    const char *text = getenv("REDLATCH_STOP");
    if (!text) return;
    milliseconds = atol(text);
    struct sigaction action = {0};
    action.sa_handler = stop;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR2, &action, 0);
}
