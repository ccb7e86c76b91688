/* Calls that are started, and end in a callback: started URL... */
#include "expect.h"
#include <dirent.h>
#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static redlatch_client *client;
static pthread_t starter;

/* What a callback was given, and what it does first. */
struct end {
    int times, turn;
    redlatch_status status;
    redlatch_guard *guard;
    redlatch_call *call;
    char text[200];
    void (*first)(struct end *);
};

static int turns;

static void done(void *data, redlatch_status status, redlatch_guard *guard) {
    struct end *end = data;
    ASSERT(!pthread_equal(pthread_self(), starter));
    ASSERT((status == REDLATCH_OK) == (guard != NULL));
    end->guard = guard;
    if (status != REDLATCH_OK) strncat(end->text, redlatch_last_error(), sizeof end->text - 1);
    if (end->first) end->first(end);
    pthread_mutex_lock(&mutex);
    end->status = status;
    end->times++;
    end->turn = turns++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_for(struct end *end) {
    pthread_mutex_lock(&mutex);
    while (end->times == 0) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static redlatch_status start(const char *name, uint64_t wait_ms, struct end *end) {
    redlatch_request request = redlatch_request_for(name, 10000);
    request.wait_ms = wait_ms;
    return redlatch_start(client, &request, done, end, &end->call);
}

static void ends(struct end *end, redlatch_status status) {
    wait_for(end);
    if (end->status != status) {
        fprintf(stderr, "a call has ended with %d, not %d: %s\n", end->status, status, end->text);
        _exit(1);
    }
    redlatch_call_free(&end->call);
    ASSERT(end->call == NULL && end->times == 1);
}

static void refused(void) {
    struct end end = {0};
    redlatch_request request = redlatch_request_for("a", 10000), flagged = request, reader = request;
    flagged.flags = 1u << 31;
    reader.flags = REDLATCH_SHARED;
    reader.one_of = 2;
    end.call = (redlatch_call *)&end;
    EXPECT(REDLATCH_INVALID, redlatch_start(NULL, &request, done, &end, &end.call));
    ASSERT(end.call == NULL);
    EXPECT(REDLATCH_INVALID, redlatch_start(client, NULL, done, &end, &end.call));
    EXPECT(REDLATCH_INVALID, redlatch_start(client, &request, NULL, &end, &end.call));
    EXPECT(REDLATCH_INVALID, redlatch_start(client, &flagged, done, &end, &end.call));
    EXPECT(REDLATCH_INVALID, redlatch_start(client, &reader, done, &end, NULL));
    ASSERT(end.call == NULL && end.times == 0);
    redlatch_call_cancel(NULL);
    redlatch_call_free(NULL);
    redlatch_call_free(&end.call);

    /* What only the library finds is told where the call ends. */
    EXPECT(REDLATCH_OK, start("", 0, &end));
    ends(&end, REDLATCH_INVALID);
    ASSERT(strlen(end.text) > 0);
}

/* The request is gone when the call goes on. */
static void copied(void) {
    struct end end = {0}, held = {0};
    redlatch_guard *holder = NULL;
    redlatch_request *request = malloc(sizeof *request);
    redlatch_bytes *more = malloc(sizeof *more);
    char *name = strdup("copied"), *other = strdup("copied too"), *owner = strdup("me");
    ASSERT(request && more && name && other && owner);
    EXPECT(REDLATCH_OK, redlatch_lock(client, "copied too", 10000, 0, &holder));
    *request = redlatch_request_for(name, 10000);
    *more = redlatch_text(other);
    request->more = more;
    request->more_count = 1;
    request->owner = redlatch_text(owner);
    request->flags = REDLATCH_KEEP_ALIVE | REDLATCH_FENCED;
    request->wait_ms = 2000; /* the nodes answer in that time, also under valgrind */
    EXPECT(REDLATCH_OK, redlatch_start(client, request, done, &held, NULL));
    request->wait_ms = REDLATCH_FOREVER;
    EXPECT(REDLATCH_OK, redlatch_start(client, request, done, &end, NULL));
    memset(request, 0xff, sizeof *request);
    free(request), free(more), free(name), free(other), free(owner);
    ends(&held, REDLATCH_HELD);
    ASSERT(strcmp(held.text, "this client holds it itself") == 0);
    EXPECT(REDLATCH_OK, redlatch_release(&holder));
    ends(&end, REDLATCH_OK);
    EXPECT(REDLATCH_OK, redlatch_ensure_held(end.guard));
    ASSERT(redlatch_fencing_token(end.guard) > 0);
    EXPECT(REDLATCH_OK, redlatch_release(&end.guard));
}

static void held_by_others(void) {
    struct end end = {0};
    redlatch_client *stranger = new_client();
    redlatch_guard *holder = NULL;
    EXPECT(REDLATCH_OK, redlatch_lock(stranger, "b", 10000, 0, &holder));
    EXPECT(REDLATCH_OK, start("b", 0, &end));
    ends(&end, REDLATCH_HELD);
    ASSERT(strcmp(end.text, "others hold the lock") == 0);
    redlatch_drop(&holder);
    redlatch_client_free(&stranger);
}

/* Those that wait have the lock in the order in which they were started, but for the one that was
 * cancelled. */
static void in_order(void) {
    enum { ALL = 20, CANCELLED = 7 };
    static struct end waits[ALL];
    redlatch_guard *holder = NULL;
    EXPECT(REDLATCH_OK, redlatch_lock(client, "c", 10000, 0, &holder));
    for (int i = 0; i < ALL; i++) EXPECT(REDLATCH_OK, start("c", REDLATCH_FOREVER, &waits[i]));
    redlatch_call_cancel(waits[CANCELLED].call);
    redlatch_call_cancel(waits[CANCELLED].call);
    wait_for(&waits[CANCELLED]);
    redlatch_call_cancel(waits[CANCELLED].call);
    ends(&waits[CANCELLED], REDLATCH_CANCELLED);
    ASSERT(strlen(waits[CANCELLED].text) > 0);
    EXPECT(REDLATCH_OK, redlatch_release(&holder));
    for (int i = 0; i < ALL; i++) {
        if (i == CANCELLED) continue;
        if (i % 2) redlatch_call_free(&waits[i].call);
        ends(&waits[i], REDLATCH_OK);
        ASSERT(i == 0 || i == CANCELLED + 1 || waits[i].turn == waits[i - 1].turn + 1);
        redlatch_drop(&waits[i].guard);
    }
}

static size_t threads(void) {
    size_t all = 0;
    DIR *tasks = opendir("/proc/self/task");
    ASSERT(tasks);
    for (struct dirent *task; (task = readdir(tasks));) all += task->d_name[0] != '.';
    closedir(tasks);
    return all;
}

/* However many wait, they take no more threads; and each can be cancelled by itself. */
static void many(void) {
    enum { ALL = 1000 };
    static struct end waits[ALL];
    redlatch_guard *holder = NULL;
    EXPECT(REDLATCH_OK, redlatch_lock(client, "many", 10000, 0, &holder));
    for (int i = 0; i < ALL; i++) EXPECT(REDLATCH_OK, start("many", REDLATCH_FOREVER, &waits[i]));
    /* This one, the driver, the one of callbacks, and the one that extends the holder's lock. */
    ASSERT(threads() <= 4);
    for (int i = ALL - 1; i >= 0; i--) redlatch_call_cancel(waits[i].call);
    for (int i = 0; i < ALL; i++) ends(&waits[i], REDLATCH_CANCELLED);
    EXPECT(REDLATCH_OK, redlatch_release(&holder));
    EXPECT(REDLATCH_OK, redlatch_lock(client, "many", 10000, 0, &holder));
    redlatch_drop(&holder);
}

static struct end next;

static void releases_and_starts(struct end *end) {
    redlatch_guard *other = NULL;
    EXPECT(REDLATCH_OK, redlatch_release(&end->guard));
    EXPECT(REDLATCH_OK, redlatch_lock(client, "d", 10000, 1000, &other));
    redlatch_drop(&other);
    /* One that fails at once as well ends behind this one. */
    EXPECT(REDLATCH_OK, start("", 0, &next));
    ASSERT(next.times == 0);
}

static void frees_the_client(struct end *end) {
    redlatch_drop(&end->guard);
    redlatch_client_free(&client);
}

static void in_the_callback(void) {
    struct end end = {0};
    end.first = releases_and_starts;
    EXPECT(REDLATCH_OK, start("d", 0, &end));
    ends(&end, REDLATCH_OK);
    ends(&next, REDLATCH_INVALID);

    memset(&end, 0, sizeof end);
    end.first = frees_the_client;
    EXPECT(REDLATCH_OK, start("d", 0, &end));
    ends(&end, REDLATCH_OK);
    ASSERT(client == NULL);
}

static void released(void *data, redlatch_status status, redlatch_guard *guard) {
    struct end *end = data;
    ASSERT(guard == NULL);
    if (status != REDLATCH_OK) strncat(end->text, redlatch_last_error(), sizeof end->text - 1);
    pthread_mutex_lock(&mutex);
    end->status = status;
    end->times++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void released_without_a_thread(void) {
    struct end free = {0}, lost = {0}, none = {0};
    redlatch_client *stranger = new_client();
    redlatch_guard *guard = NULL, *next_holder = NULL;
    client = new_client();
    EXPECT(REDLATCH_OK, redlatch_lock(client, "f", 10000, 1000, &guard));
    EXPECT(REDLATCH_INVALID, redlatch_start_release(&guard, NULL, &none));
    EXPECT(REDLATCH_OK, redlatch_ensure_held(guard)); /* there was nobody to be told */
    EXPECT(REDLATCH_OK, redlatch_start_release(&guard, released, &free));
    ASSERT(guard == NULL);
    ends(&free, REDLATCH_OK);
    EXPECT(REDLATCH_INVALID, redlatch_start_release(&guard, released, &none));
    EXPECT(REDLATCH_INVALID, redlatch_start_release(NULL, released, &none));
    ASSERT(none.times == 0);

    EXPECT(REDLATCH_OK, redlatch_lock(stranger, "f", 10000, 0, &guard));
    redlatch_drop(&guard);
    redlatch_request request = redlatch_request_for("g", 300);
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    /* It has ended on the nodes as well when another one has it. */
    EXPECT(REDLATCH_OK, redlatch_lock(stranger, "g", 10000, 30000, &next_holder));
    EXPECT(REDLATCH_OK, redlatch_start_release(&guard, released, &lost));
    redlatch_client_free(&client);
    ends(&lost, REDLATCH_LOST);
    ASSERT(strlen(lost.text) > 0);
    EXPECT(REDLATCH_OK, redlatch_release(&next_holder));
    redlatch_client_free(&stranger);
}

/* Calls keep what they need of their client, and are cancelled with it. */
static void the_end_of_the_client(void) {
    struct end first = {0}, second = {0}, late = {0};
    redlatch_client *stranger = new_client();
    redlatch_guard *holder = NULL;
    client = new_client();
    EXPECT(REDLATCH_OK, redlatch_lock(stranger, "e", 10000, 0, &holder));
    EXPECT(REDLATCH_OK, start("e", 60000, &first));
    redlatch_client_free(&client);
    EXPECT(REDLATCH_OK, redlatch_release(&holder));
    ends(&first, REDLATCH_OK);
    EXPECT(REDLATCH_OK, redlatch_release(&first.guard));

    client = new_client();
    EXPECT(REDLATCH_OK, redlatch_lock(stranger, "e", 10000, 1000, &holder));
    EXPECT(REDLATCH_OK, start("e", REDLATCH_FOREVER, &second));
    redlatch_client_cancel(client);
    EXPECT(REDLATCH_OK, start("e", REDLATCH_FOREVER, &late));
    redlatch_client_free(&client);
    ends(&second, REDLATCH_CANCELLED);
    ends(&late, REDLATCH_CANCELLED);
    redlatch_drop(&holder);
    redlatch_client_free(&stranger);
}

int main(int argc, char **argv) {
    read_urls(argc, argv);
    starter = pthread_self();
    client = new_client();
    refused();
    copied();
    held_by_others();
    in_order();
    many();
    in_the_callback();
    released_without_a_thread();
    the_end_of_the_client();
    puts("done");
    return 0;
}
