/* A program that has closed descriptors 0 to 2, and prints: closed URL... */
#include "expect.h"
#include <fcntl.h>

static int in, out, err;

#define MUST(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            dprintf(err, "line %d: %s: %s\n", __LINE__, #condition, redlatch_last_error());        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static int above(int descriptor) {
    return fcntl(descriptor, F_DUPFD_CLOEXEC, 100);
}

static void close_all(void) {
    for (int descriptor = 0; descriptor < 3; descriptor++) close(descriptor);
}

/* None is a connection, a poll or a waker of the library. */
static void are_not_the_librarys(void) {
    for (int descriptor = 0; descriptor < 3; descriptor++) {
        char link[32], file[64];
        snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
        ssize_t length = readlink(link, file, sizeof file);
        MUST(length < 0 || (length == 9 && memcmp(file, "/dev/null", 9) == 0));
    }
    puts("*1\r\n$8\r\nFLUSHALL\r\n");
    fflush(stdout);
    fprintf(stderr, "*1\r\n$8\r\nFLUSHALL\r\n");
}

int main(int argc, char **argv) {
    char go_on;
    redlatch_guard *guard = NULL;
    redlatch_client *client = NULL;
    redlatch_options options = redlatch_default_options();
    options.flags = REDLATCH_NO_RESTART_GUARD;
    read_urls(argc, argv);
    in = above(0), out = above(1), err = above(2);
    close_all();
    MUST(redlatch_client_new(urls, count, &options, &client) == REDLATCH_OK);
    MUST(redlatch_lock(client, "a", 30000, 30000, &guard) == REDLATCH_OK);
    are_not_the_librarys();
    MUST(redlatch_ensure_held(guard) == REDLATCH_OK);
    MUST(redlatch_release(&guard) == REDLATCH_OK);

    /* Once more, as a daemon does late: all connections are made anew. */
    close_all();
    dprintf(out, "closed\n");
    MUST(read(in, &go_on, 1) == 1);
    MUST(redlatch_lock(client, "a", 30000, 30000, &guard) == REDLATCH_OK);
    are_not_the_librarys();
    MUST(redlatch_extend(guard, 40000) == REDLATCH_OK);
    MUST(redlatch_release(&guard) == REDLATCH_OK);
    redlatch_client_free(&client);
    dprintf(out, "done\n");
    return 0;
}
