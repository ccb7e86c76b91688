/* Where no thread can be started, nothing begins, and nothing calls back: no_threads URL... */
#include "expect.h"
#include <sys/resource.h>

static int times;

static void done(void *data, redlatch_status status, redlatch_guard *guard) {
    redlatch_drop(&guard);
    (void)data, (void)status;
    __atomic_add_fetch(&times, 1, __ATOMIC_SEQ_CST);
}

/* The stack of a thread takes two million bytes. */
static void set_room(rlim_t bytes) {
    struct rlimit limit;
    ASSERT(getrlimit(RLIMIT_AS, &limit) == 0);
    limit.rlim_cur = bytes;
    ASSERT(setrlimit(RLIMIT_AS, &limit) == 0);
}

static rlim_t used(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    ASSERT(file && fscanf(file, "%lu", &pages) == 1);
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

int main(int argc, char **argv) {
    read_urls(argc, argv);
    redlatch_client *client = new_client();
    redlatch_call *call = NULL;
    redlatch_guard *guard = NULL;
    redlatch_request request = redlatch_request_for("a", 10000);
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    /* Room for no thread, and for one where two are needed. */
    for (rlim_t stacks = 0; stacks < 2; stacks++) {
        set_room(used() + 1000000 + stacks * 2200000);
        EXPECT(REDLATCH_OTHER, redlatch_start(client, &request, done, NULL, &call));
        ASSERT(call == NULL && times == 0 && strlen(redlatch_last_error()) > 0);
    }
    EXPECT(REDLATCH_OTHER, redlatch_start_release(&guard, done, NULL));
    ASSERT(guard == NULL && times == 0);
    set_room(RLIM_INFINITY);
    request.wait_ms = 5000; /* the lock was given up all the same, and ends with its ttl otherwise */
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    EXPECT(REDLATCH_OK, redlatch_release(&guard));
    EXPECT(REDLATCH_OK, redlatch_start(client, &request, done, NULL, NULL));
    while (__atomic_load_n(&times, __ATOMIC_SEQ_CST) == 0) usleep(1000);
    redlatch_client_free(&client);
    ASSERT(times == 1);
    puts("done");
    return 0;
}
