/* What the header says, against nodes that run: calls URL... */
#include "redlatch.h"
#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT(status, call)                                                                       \
    do {                                                                                           \
        redlatch_status got = (call);                                                              \
        if (got != (status)) {                                                                     \
            fprintf(stderr, "%d: %s is %d: %s\n", __LINE__, #call, got, redlatch_last_error());    \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

static redlatch_client *client;
static int inside, most;

static void *work(void *data) {
    (void)data;
    for (int i = 0; i < 20; i++) {
        redlatch_lock *lock = NULL;
        EXPECT(REDLATCH_OK, redlatch_lock_name(client, "counter", 10000, &lock));
        inside++; /* only one thread at a time is here */
        most = inside > most ? inside : most;
        inside--;
        EXPECT(REDLATCH_OK, redlatch_release(lock));
    }
    return NULL;
}

static void *wait_for_it(void *data) {
    redlatch_lock *lock = NULL;
    EXPECT(REDLATCH_CANCELLED, redlatch_lock_name(data, "taken", 10000, &lock));
    assert(lock == NULL);
    return NULL;
}

static void of_null(void) {
    redlatch_lock *lock = NULL;
    EXPECT(REDLATCH_INVALID, redlatch_client_new(NULL, 1, NULL, &client));
    EXPECT(REDLATCH_INVALID, redlatch_acquire(NULL, NULL, &lock));
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, NULL, NULL));
    EXPECT(REDLATCH_INVALID, redlatch_extend(NULL, 1));
    EXPECT(REDLATCH_INVALID, redlatch_ensure_held(NULL));
    EXPECT(REDLATCH_INVALID, redlatch_release(NULL));
    EXPECT(REDLATCH_INVALID, redlatch_on_lost(NULL, NULL, NULL));
    EXPECT(REDLATCH_INVALID, redlatch_nodes(NULL, NULL));
    assert(redlatch_remaining(NULL) == 0 && redlatch_fencing_token(NULL) == 0);
    assert(redlatch_slot(NULL) == UINT32_MAX);
    redlatch_drop(NULL);
    redlatch_free(NULL);
    redlatch_client_free(NULL);
    redlatch_client_cancel(NULL);
}

int main(int argc, char **argv) {
    redlatch_bytes urls[16];
    size_t count = (size_t)argc - 1;
    assert(count > 0 && count <= 16);
    for (size_t i = 0; i < count; i++) urls[i] = redlatch_text(argv[i + 1]);
    of_null();

    redlatch_bytes wrong = redlatch_text("http://localhost");
    EXPECT(REDLATCH_INVALID, redlatch_client_new(&wrong, 1, NULL, &client));
    assert(strlen(redlatch_last_error()) > 0);

    redlatch_options options = {0};
    options.without_restart_guard = true;
    options.key_prefix = redlatch_text("c:");
    EXPECT(REDLATCH_OK, redlatch_client_new(urls, count, &options, &client));
    assert(strlen(redlatch_last_error()) == 0);

    redlatch_lock *lock = NULL, *other = NULL;
    EXPECT(REDLATCH_OK, redlatch_try_lock(client, "a", 10000, &lock));
    EXPECT(REDLATCH_HELD, redlatch_try_lock(client, "a", 10000, &other));
    assert(other == NULL);
    assert(redlatch_remaining(lock) > 0 && redlatch_remaining(lock) <= 10000);
    EXPECT(REDLATCH_OK, redlatch_ensure_held(lock));
    EXPECT(REDLATCH_OK, redlatch_extend(lock, 30000));
    assert(redlatch_remaining(lock) > 10000);
    assert(redlatch_fencing_token(lock) == 0 && redlatch_slot(lock) == UINT32_MAX);
    EXPECT(REDLATCH_OK, redlatch_release(lock));

    redlatch_request request = {redlatch_text("b"), 10000, 1000, true, true, false, 0};
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &lock));
    uint64_t token = redlatch_fencing_token(lock);
    assert(token > 0);
    redlatch_drop(lock);
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &lock));
    assert(redlatch_fencing_token(lock) > token);
    redlatch_drop(lock);

    request = (redlatch_request){redlatch_text("c"), 10000, 0, false, false, false, 2};
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &lock));
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &other));
    assert(redlatch_slot(lock) + redlatch_slot(other) == 1);
    redlatch_drop(lock);
    redlatch_drop(other);

    request = (redlatch_request){{NULL, 0}, 10000, 0, false, false, false, 0};
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, &lock));
    EXPECT(REDLATCH_INVALID, redlatch_try_lock(client, "a", 0, &lock));

    pthread_t threads[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < 8; i++) pthread_join(threads[i], NULL);
    assert(most == 1);

    char *text = NULL;
    EXPECT(REDLATCH_OK, redlatch_nodes(client, &text));
    size_t lines = 0;
    for (char *at = text; *at; at++) lines += *at == '\n';
    assert(lines == count);
    redlatch_free(text);

    /* A child leaves the parent's lock alone. */
    EXPECT(REDLATCH_OK, redlatch_try_lock(client, "kept", 10000, &lock));
    pid_t child = fork();
    if (child == 0) {
        other = NULL;
        int wrongs = redlatch_try_lock(client, "x", 1000, &other) != REDLATCH_OTHER_PROCESS;
        redlatch_drop(lock);
        redlatch_client_free(client);
        _exit(wrongs);
    }
    int status = 1;
    waitpid(child, &status, 0);
    assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT(REDLATCH_HELD, redlatch_try_lock(client, "kept", 10000, &other));
    EXPECT(REDLATCH_OK, redlatch_release(lock));

    EXPECT(REDLATCH_OK, redlatch_try_lock(client, "taken", 10000, &lock));
    redlatch_client *second = NULL;
    EXPECT(REDLATCH_OK, redlatch_client_new(urls, count, &options, &second));
    pthread_create(&threads[0], NULL, wait_for_it, second);
    usleep(50000);
    redlatch_client_cancel(second);
    pthread_join(threads[0], NULL);
    redlatch_client_free(second);
    redlatch_client_free(client);
    EXPECT(REDLATCH_OK, redlatch_release(lock)); /* a lock outlives its client's handle */
    puts("done");
    return 0;
}
