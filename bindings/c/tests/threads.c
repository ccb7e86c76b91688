/* Many threads, forks meanwhile, and a wait that is cancelled: threads COUNT FORKS URL... */
#include "expect.h"
#include <pthread.h>
#include <sys/wait.h>

static redlatch_client *client;
static int inside;

static void *work(void *data) {
    (void)data;
    for (int i = 0; i < 20; i++) {
        redlatch_guard *guard = NULL;
        EXPECT(REDLATCH_OK, redlatch_lock(client, "counter", 10000, REDLATCH_FOREVER, &guard));
        ASSERT(__atomic_add_fetch(&inside, 1, __ATOMIC_SEQ_CST) == 1);
        EXPECT(REDLATCH_OK, redlatch_ensure_held(guard));
        __atomic_sub_fetch(&inside, 1, __ATOMIC_SEQ_CST);
        EXPECT(REDLATCH_OK, redlatch_release(&guard));
    }
    return NULL;
}

static void *wait_in_vain(void *data) {
    redlatch_guard *guard = NULL;
    EXPECT(REDLATCH_CANCELLED, redlatch_lock(data, "kept", 10000, REDLATCH_FOREVER, &guard));
    ASSERT(guard == NULL);
    return NULL;
}

static void ignore(void *data, const char *why) {
    (void)data, (void)why;
}

static pid_t parent;
static int ends;

static void cancelled(void *data, redlatch_status status, redlatch_guard *guard) {
    (void)data;
    ASSERT(getpid() == parent && status == REDLATCH_CANCELLED && guard == NULL);
    __atomic_add_fetch(&ends, 1, __ATOMIC_SEQ_CST);
}

static void exits_with_zero(pid_t child) {
    int status = 1;
    ASSERT(waitpid(child, &status, 0) == child);
    ASSERT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* Every function fails at once, and frees memory only. */
static void as_a_child(redlatch_guard *kept, redlatch_call *call) {
    redlatch_guard *guard = NULL;
    redlatch_call *refused = NULL;
    redlatch_request request = redlatch_request_for("x", 10000);
    char *text = NULL;
    alarm(60);
    EXPECT(REDLATCH_OTHER_PROCESS, redlatch_start(client, &request, cancelled, NULL, &refused));
    ASSERT(refused == NULL);
    redlatch_call_cancel(call);
    redlatch_call_free(&call);
    EXPECT(REDLATCH_OTHER_PROCESS, redlatch_lock(client, "x", 10000, REDLATCH_FOREVER, &guard));
    EXPECT(REDLATCH_OTHER_PROCESS, redlatch_extend(kept, 10000));
    EXPECT(REDLATCH_OTHER_PROCESS, redlatch_ensure_held(kept));
    EXPECT(REDLATCH_OTHER_PROCESS, redlatch_on_lost(kept, ignore, NULL));
    EXPECT(REDLATCH_OTHER_PROCESS, redlatch_nodes(client, &text));
    ASSERT(redlatch_remaining(kept) == 0);
    redlatch_client_cancel(client);
    EXPECT(REDLATCH_OTHER_PROCESS, redlatch_release(&kept));
    redlatch_client_free(&client);

    client = new_client();
    EXPECT(REDLATCH_HELD, redlatch_lock(client, "kept", 10000, 0, &guard));
    EXPECT(REDLATCH_OK, redlatch_lock(client, "of the child", 10000, 1000, &guard));
    EXPECT(REDLATCH_OK, redlatch_release(&guard));
    redlatch_client_free(&client);
    _exit(0);
}

int main(int argc, char **argv) {
    pthread_t threads[64];
    int all = atoi(argv[1]), forks = atoi(argv[2]);
    read_urls(argc - 2, argv + 2);
    client = new_client();
    for (int i = 0; i < all; i++) ASSERT(pthread_create(&threads[i], NULL, work, NULL) == 0);

    /* Forks while other threads are in calls, which hold locks of the library. */
    redlatch_guard *kept = NULL;
    EXPECT(REDLATCH_OK, redlatch_lock(client, "kept", 10000, 0, &kept));
    EXPECT(REDLATCH_OK, redlatch_on_lost(kept, ignore, NULL));
    redlatch_call *call = NULL;
    redlatch_request request = redlatch_request_for("kept", 10000);
    request.wait_ms = REDLATCH_FOREVER; /* for its own lock: a call that was started has no thread */
    parent = getpid();
    EXPECT(REDLATCH_OK, redlatch_start(client, &request, cancelled, NULL, &call));
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) as_a_child(kept, call);
        exits_with_zero(child);
    }
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        if (child == 0) {
            EXPECT(REDLATCH_OTHER_PROCESS, redlatch_start_release(&kept, cancelled, NULL));
            ASSERT(kept == NULL);
            redlatch_client_free(&client);
            _exit(0);
        }
        exits_with_zero(child);
    }
    for (int i = 0; i < all; i++) pthread_join(threads[i], NULL);
    EXPECT(REDLATCH_OK, redlatch_ensure_held(kept));
    ASSERT(__atomic_load_n(&ends, __ATOMIC_SEQ_CST) == 0);
    redlatch_call_cancel(call);
    redlatch_call_free(&call);
    while (__atomic_load_n(&ends, __ATOMIC_SEQ_CST) == 0) usleep(1000);

    redlatch_client *waiting = new_client();
    pthread_create(&threads[0], NULL, wait_in_vain, waiting);
    usleep(50000); /* most likely it waits now; the result is the same if it does not yet */
    redlatch_client_cancel(waiting);
    pthread_join(threads[0], NULL);
    redlatch_client_free(&waiting);
    EXPECT(REDLATCH_OK, redlatch_release(&kept));
    redlatch_client_free(&client);
    puts("done");
    return 0;
}
