/* Delays the return of posix_spawnp by half a second, as a busy machine may: the process that was
   started runs before its parent goes on. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <spawn.h>
#include <time.h>

int posix_spawnp(pid_t *process, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const arguments[],
                 char *const environment[]) {
    static int (*real)(pid_t *, const char *, const posix_spawn_file_actions_t *,
                       const posix_spawnattr_t *, char *const[], char *const[]);
    if (!real) real = dlsym(RTLD_NEXT, "posix_spawnp");
    int result = real(process, file, actions, attributes, arguments, environment);
    struct timespec left = {0, 500000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR) {}
    return result;
}
