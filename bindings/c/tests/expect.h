/* What a test of these expects. The line on stderr fails it. */
#include <redlatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define ASSERT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #condition,                     \
                    redlatch_last_error());                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

#define EXPECT(status, call)                                                                       \
    do {                                                                                           \
        redlatch_status got = (call);                                                              \
        if (got != (status)) {                                                                     \
            fprintf(stderr, "%s:%d: %s is %d: %s\n", __FILE__, __LINE__, #call, got,               \
                    redlatch_last_error());                                                        \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static redlatch_bytes urls[16];
static size_t count;

static inline void read_urls(int argc, char **argv) {
    alarm(120); /* a call that hangs fails the test */
    for (int i = 1; i < argc && count < 16; i++) urls[count++] = redlatch_text(argv[i]);
    ASSERT(count > 0);
}

static inline redlatch_client *new_client(void) {
    redlatch_client *client = NULL;
    redlatch_options options = redlatch_default_options();
    options.node_timeout_ms = 500; /* this may run under valgrind, on a machine that is busy */
    EXPECT(REDLATCH_OK, redlatch_client_new(urls, count, &options, &client));
    return client;
}

/* Says what was reached, and waits until the test has done its part. */
static inline void reach(const char *what) {
    puts(what);
    fflush(stdout);
    ASSERT(getchar() == '\n');
}
