/* Every function, with arguments that are right and that are wrong: calls URL... */
#include "expect.h"
#include <math.h>
#include <pthread.h>

#define FIRST_SIZE offsetof(redlatch_options, connect_timeout_ms)

static redlatch_client *client;
static redlatch_guard *guard;

static void ignore(void *data, const char *why) {
    (void)data, (void)why;
}

static void null_pointers(void) {
    redlatch_request request = redlatch_request_for("a", 10000);
    redlatch_client *made = NULL;
    char *text = NULL;
    EXPECT(REDLATCH_INVALID, redlatch_client_new(NULL, 1, NULL, &made));
    EXPECT(REDLATCH_INVALID, redlatch_client_new(urls, count, NULL, NULL));
    EXPECT(REDLATCH_INVALID, redlatch_acquire(NULL, &request, &guard));
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, NULL, &guard));
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, NULL));
    EXPECT(REDLATCH_INVALID, redlatch_lock(client, NULL, 10000, 0, &guard));
    EXPECT(REDLATCH_INVALID, redlatch_extend(NULL, 1));
    EXPECT(REDLATCH_INVALID, redlatch_ensure_held(NULL));
    EXPECT(REDLATCH_INVALID, redlatch_release(NULL));
    EXPECT(REDLATCH_INVALID, redlatch_on_lost(NULL, ignore, NULL));
    EXPECT(REDLATCH_INVALID, redlatch_into_token(&guard, &text));
    EXPECT(REDLATCH_INVALID, redlatch_into_token(NULL, &text));
    EXPECT(REDLATCH_INVALID, redlatch_resume(NULL, &request, redlatch_text("a"), &guard));
    EXPECT(REDLATCH_INVALID, redlatch_resume(client, NULL, redlatch_text("a"), &guard));
    EXPECT(REDLATCH_INVALID, redlatch_resume(client, &request, redlatch_text("a"), NULL));
    EXPECT(REDLATCH_INVALID, redlatch_nodes(NULL, &text));
    EXPECT(REDLATCH_INVALID, redlatch_nodes(client, NULL));
    ASSERT(redlatch_remaining(NULL) == 0 && redlatch_fencing_token(NULL) == 0);
    ASSERT(redlatch_slot(NULL) == UINT32_MAX);
    redlatch_drop(NULL);
    redlatch_free(NULL);
    redlatch_client_free(NULL);
    redlatch_client_cancel(NULL);
}

/* Makes no client, and says why. */
static void refused(const char *url, size_t size, const redlatch_options *options) {
    redlatch_bytes bytes;
    redlatch_client *made = (redlatch_client *)&bytes;
    bytes.data = url;
    bytes.size = size;
    EXPECT(REDLATCH_INVALID, redlatch_client_new(&bytes, 1, options, &made));
    ASSERT(made == NULL && strlen(redlatch_last_error()) > 0);
}

/* Is too long, as the library says, so it has got there. */
static void refused_setting(const char *name, const char *url, size_t offset) {
    redlatch_options options = redlatch_default_options();
    uint64_t time = UINT64_MAX;
    memcpy((char *)&options + offset, &time, sizeof time);
    refused(url, strlen(url), &options);
    ASSERT(strstr(redlatch_last_error(), name));
}

static void wrong_clients(void) {
    const char *url = urls[0].data;
    size_t size = urls[0].size;
    redlatch_client *made = NULL;
    EXPECT(REDLATCH_INVALID, redlatch_client_new(NULL, 0, NULL, &made));
    EXPECT(REDLATCH_INVALID, redlatch_client_new(urls, SIZE_MAX / 2, NULL, &made));
    refused("http://localhost", 16, NULL);
    refused("redis://\xff", 9, NULL);
    refused(NULL, 5, NULL);
    refused(url, (size_t)-1, NULL);
    refused(url, 0, NULL);

    redlatch_options options;
    memset(&options, 0, sizeof options);
    refused(url, size, &options); /* a size of 0 */
    options = redlatch_default_options();
    options.flags = 1u << 31;
    refused(url, size, &options);
    options = redlatch_default_options();
    options.client_name = redlatch_text("has spaces");
    refused(url, size, &options);
    options.client_name = redlatch_text("\xff");
    refused(url, size, &options);
    options = redlatch_default_options();
    options.certificate = redlatch_text("/etc/client.crt");
    refused(url, size, &options); /* without its key */
    options.key = redlatch_text("/etc/client.key");
    refused("rediss://localhost", 18, &options);
    ASSERT(strstr(redlatch_last_error(), "/etc/client.crt"));
    options.ca_file = redlatch_text("/does/not/exist");
    refused("rediss://localhost", 18, &options);
    ASSERT(strstr(redlatch_last_error(), "/does/not/exist"));
    options = redlatch_default_options();
    options.key_prefix = redlatch_text("a:redlatch:");
    refused(url, size, &options);
    options = redlatch_default_options();
    options.node_timeout_ms = UINT32_MAX;
    refused(url, size, &options);
    options = redlatch_default_options();
    options.max_ttl_ms = UINT64_MAX;
    refused(url, size, &options);
    refused_setting("connect_timeout", url, offsetof(redlatch_options, connect_timeout_ms));
    refused_setting("fencing_expiry", url, offsetof(redlatch_options, fencing_expiry_ms));
    refused_setting("session_timeout", url, offsetof(redlatch_options, session_timeout_ms));
    refused_setting("session_timeout", "zk://a", offsetof(redlatch_options, session_timeout_ms));
    const double factors[] = {0.6, -0.01, NAN, INFINITY, -INFINITY};
    for (size_t index = 0; index < sizeof factors / sizeof *factors; index++) {
        options = redlatch_default_options();
        options.drift_factor = factors[index];
        refused(url, size, &options);
        ASSERT(strstr(redlatch_last_error(), "drift_factor"));
    }
}

/* Structures of the first header, which had fewer members, and of a later one, which has a member
 * that this library does not know. */
static void other_headers(void) {
    struct {
        redlatch_request known;
        uint64_t member;
    } later;
    memset(&later, 0, sizeof later);
    later.known = redlatch_request_for("later", 10000);
    later.known.size = sizeof later;
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &later.known, &guard));
    EXPECT(REDLATCH_OK, redlatch_release(&guard));
    later.member = 1;
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &later.known, &guard));
    ASSERT(guard == NULL);
    later.known.size = 8;
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &later.known, &guard));

    redlatch_request request = redlatch_request_for("first", 10000);
    memset(&request.more, 0xff, sizeof request - offsetof(redlatch_request, more));
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, &guard));
    request.size = offsetof(redlatch_request, more);
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    EXPECT(REDLATCH_OK, redlatch_release(&guard));

    redlatch_options options = redlatch_default_options();
    redlatch_client *made = NULL;
    memset(&options.connect_timeout_ms, 0xff, sizeof options - FIRST_SIZE); /* what follows it */
    refused(urls[0].data, urls[0].size, &options);
    options.size = FIRST_SIZE;
    EXPECT(REDLATCH_OK, redlatch_client_new(urls, count, &options, &made));
    redlatch_client_free(&made);
    options.size = FIRST_SIZE - 1;
    refused(urls[0].data, urls[0].size, &options);
}

/* What all programs of a group must share: it makes the time that a new group waits for. */
static void a_group(void) {
    char url[128];
    snprintf(url, sizeof url, "%.*s?failover=true", (int)urls[0].size, urls[0].data);
    redlatch_bytes bytes = redlatch_text(url);
    redlatch_options options = redlatch_default_options();
    redlatch_client *made = NULL;
    options.failover_bound_ms = 900500000;
    EXPECT(REDLATCH_OK, redlatch_client_new(&bytes, 1, &options, &made));
    time_t began = time(NULL); /* a wait that cannot help is none */
    EXPECT(REDLATCH_NO_QUORUM, redlatch_lock(made, "a", 10000, 60000, &guard));
    ASSERT(time(NULL) - began < 30);
    ASSERT(strstr(redlatch_last_error(), "quarantined for another 900")); /* in the next minutes */
    redlatch_client_free(&made);
}

static void locks(void) {
    redlatch_guard *other = NULL;
    redlatch_request request = redlatch_request_for("a", 10000);
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    EXPECT(REDLATCH_HELD, redlatch_acquire(client, &request, &other));
    ASSERT(other == NULL && strcmp(redlatch_last_error(), "this thread holds it itself") == 0);
    EXPECT(REDLATCH_HELD, redlatch_lock(client, "a", 10000, 20, &other));
    ASSERT(redlatch_remaining(guard) > 0 && redlatch_remaining(guard) <= 10000);
    EXPECT(REDLATCH_OK, redlatch_ensure_held(guard));
    EXPECT(REDLATCH_OK, redlatch_on_lost(guard, ignore, NULL));
    EXPECT(REDLATCH_INVALID, redlatch_on_lost(guard, NULL, NULL));
    EXPECT(REDLATCH_OK, redlatch_extend(guard, 30000));
    ASSERT(redlatch_remaining(guard) > 10000);
    EXPECT(REDLATCH_INVALID, redlatch_extend(guard, 0));
    EXPECT(REDLATCH_INVALID, redlatch_extend(guard, UINT64_MAX));
    EXPECT(REDLATCH_OK, redlatch_ensure_held(guard));
    ASSERT(redlatch_fencing_token(guard) == 0 && redlatch_slot(guard) == UINT32_MAX);
    EXPECT(REDLATCH_OK, redlatch_release(&guard));

    /* A name may have any bytes. */
    request = redlatch_request_for("", 10000);
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, &guard));
    request.name.data = "\0\xff";
    request.name.size = 2;
    request.owner = redlatch_text("host-17");
    request.wait_ms = 1000;
    request.max_hold_ms = REDLATCH_FOREVER;
    request.flags = REDLATCH_KEEP_ALIVE | REDLATCH_FENCED;
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    uint64_t token = redlatch_fencing_token(guard);
    ASSERT(token > 0);
    redlatch_drop(&guard);
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    ASSERT(redlatch_fencing_token(guard) > token);
    EXPECT(REDLATCH_OK, redlatch_release(&guard));
    char owner[257];
    memset(owner, 'x', sizeof owner);
    request.owner.data = owner;
    request.owner.size = sizeof owner;
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, &guard));
    request.owner.size = 0;
    request.flags = 1u << 31;
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, &guard));
    request.flags = REDLATCH_KEEP_ALIVE;
    request.max_hold_ms = 5000; /* less than the ttl */
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, &guard));
    request.flags = 0;
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, &guard));
    ASSERT(strstr(redlatch_last_error(), "longer than max_hold of 5s"));

    request = redlatch_request_for("b", 10000);
    request.one_of = 2;
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &other));
    ASSERT(redlatch_slot(guard) + redlatch_slot(other) == 1);
    redlatch_drop(&guard);
    redlatch_drop(&other);
    request.flags = REDLATCH_SHARED;
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, &guard));
    request = redlatch_request_for("c", 10000);
    request.flags = REDLATCH_SHARED;
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &other));
    redlatch_drop(&guard);
    redlatch_drop(&other);
    EXPECT(REDLATCH_INVALID, redlatch_lock(client, "a", 0, 0, &guard));
    EXPECT(REDLATCH_INVALID, redlatch_lock(client, "a", 40001, 0, &guard)); /* max_ttl_ms */
    EXPECT(REDLATCH_INVALID, redlatch_lock(client, "a", UINT64_MAX, 0, &guard));
}

/* Of several names, all are held or none is. */
static void several_names(void) {
    redlatch_guard *other = NULL;
    redlatch_bytes more[2] = {redlatch_text("h"), redlatch_text("i")};
    redlatch_request request = redlatch_request_for("g", 10000);
    request.more = more;
    request.more_count = 2;
    EXPECT(REDLATCH_OK, redlatch_lock(client, "i", 10000, 0, &other));
    EXPECT(REDLATCH_HELD, redlatch_acquire(client, &request, &guard));
    ASSERT(guard == NULL);
    EXPECT(REDLATCH_OK, redlatch_release(&other));
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    for (const char *name = "ghi"; *name; name++) {
        const char text[] = {*name, 0};
        EXPECT(REDLATCH_HELD, redlatch_lock(client, text, 10000, 0, &other));
    }
    EXPECT(REDLATCH_OK, redlatch_release(&guard));
    EXPECT(REDLATCH_OK, redlatch_lock(client, "i", 10000, 0, &other));
    redlatch_drop(&other);
    more[1] = redlatch_text("");
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, &guard));
    more[1].data = NULL;
    more[1].size = 1;
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, &guard));
    request.more = NULL;
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, &guard));
    request.more = more;
    request.more_count = 1;
    request.flags = REDLATCH_SHARED;
    EXPECT(REDLATCH_INVALID, redlatch_acquire(client, &request, &guard));
}

/* Another client takes a lock over by its token. */
static void tokens(const redlatch_options *options) {
    redlatch_client *worker = NULL;
    redlatch_guard *resumed = NULL;
    char *token = NULL;
    redlatch_bytes more = redlatch_text("k");
    redlatch_request request = redlatch_request_for("j", 10000);
    request.flags = REDLATCH_FENCED;
    request.more = &more;
    request.more_count = 1;
    EXPECT(REDLATCH_OK, redlatch_client_new(urls, count, options, &worker));
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    uint64_t fence = redlatch_fencing_token(guard);
    EXPECT(REDLATCH_INVALID, redlatch_into_token(&guard, NULL));
    EXPECT(REDLATCH_OK, redlatch_ensure_held(guard)); /* there was no place for the token */
    EXPECT(REDLATCH_OK, redlatch_into_token(&guard, &token));
    ASSERT(guard == NULL && token && strlen(token) > 30);
    EXPECT(REDLATCH_HELD, redlatch_lock(worker, "k", 10000, 0, &resumed));

    redlatch_request other = redlatch_request_for("j", 10000);
    EXPECT(REDLATCH_INVALID, redlatch_resume(worker, &other, redlatch_text(token), &resumed));
    EXPECT(REDLATCH_INVALID, redlatch_resume(worker, &request, redlatch_text("x"), &resumed));
    EXPECT(REDLATCH_INVALID, redlatch_resume(worker, &request, redlatch_text(NULL), &resumed));
    ASSERT(resumed == NULL);
    request.flags = REDLATCH_KEEP_ALIVE;
    EXPECT(REDLATCH_OK, redlatch_resume(worker, &request, redlatch_text(token), &resumed));
    EXPECT(REDLATCH_OK, redlatch_ensure_held(resumed));
    ASSERT(redlatch_fencing_token(resumed) == fence && fence > 0);
    EXPECT(REDLATCH_HELD, redlatch_lock(client, "j", 10000, 0, &guard));
    EXPECT(REDLATCH_OK, redlatch_release(&resumed));
    EXPECT(REDLATCH_LOST, redlatch_resume(worker, &request, redlatch_text(token), &resumed));
    ASSERT(resumed == NULL);
    redlatch_free(token);
    redlatch_client_free(&worker);
}

/* What is freed is null from then on, and says so when it is used again. */
static void released(void) {
    redlatch_client *freed = NULL;
    EXPECT(REDLATCH_OK, redlatch_lock(client, "f", 10000, 0, &guard));
    EXPECT(REDLATCH_OK, redlatch_release(&guard));
    ASSERT(guard == NULL);
    EXPECT(REDLATCH_INVALID, redlatch_ensure_held(guard));
    ASSERT(strstr(redlatch_last_error(), "it was released already"));
    EXPECT(REDLATCH_INVALID, redlatch_extend(guard, 10000));
    EXPECT(REDLATCH_INVALID, redlatch_on_lost(guard, ignore, NULL));
    EXPECT(REDLATCH_INVALID, redlatch_release(&guard));
    ASSERT(strstr(redlatch_last_error(), "it was released already"));
    EXPECT(REDLATCH_OK, redlatch_lock(client, "f", 10000, 0, &guard));
    redlatch_drop(&guard);
    ASSERT(guard == NULL);
    redlatch_drop(&guard);
    EXPECT(REDLATCH_OK, redlatch_client_new(urls, count, NULL, &freed));
    redlatch_client_free(&freed);
    ASSERT(freed == NULL);
    redlatch_client_free(&freed);
    EXPECT(REDLATCH_INVALID, redlatch_lock(freed, "f", 10000, 0, &guard));
}

static void *another_thread(void *unused) {
    redlatch_guard *refused = NULL;
    EXPECT(REDLATCH_HELD, redlatch_lock(client, "own", 10000, 20, &refused));
    ASSERT(strcmp(redlatch_last_error(), "another thread of this client holds it") == 0);
    return unused;
}

/* Whoever waits for itself is told so, and not for ever. */
static void own_locks(const redlatch_options *options) {
    redlatch_client *stranger = NULL;
    redlatch_guard *other = NULL;
    pthread_t thread;
    EXPECT(REDLATCH_OK, redlatch_client_new(urls, count, options, &stranger));
    EXPECT(REDLATCH_OK, redlatch_lock(client, "own", 10000, REDLATCH_FOREVER, &guard));
    EXPECT(REDLATCH_HELD_BY_THIS_THREAD,
           redlatch_lock(client, "own", 10000, REDLATCH_FOREVER, &other));
    ASSERT(other == NULL && strstr(redlatch_last_error(), "this thread holds the lock itself"));
    EXPECT(REDLATCH_HELD, redlatch_lock(client, "own", 10000, 20, &other));
    ASSERT(strcmp(redlatch_last_error(), "this thread holds it itself") == 0);
    EXPECT(REDLATCH_HELD, redlatch_lock(stranger, "own", 10000, 0, &other));
    ASSERT(strcmp(redlatch_last_error(), "others hold the lock") == 0);
    ASSERT(pthread_create(&thread, NULL, another_thread, NULL) == 0);
    ASSERT(pthread_join(thread, NULL) == 0);
    redlatch_drop(&guard);
    redlatch_client_free(&stranger);

    /* A reader waits for its own share. A permit of several is no other, unless it has them all. */
    redlatch_request request = redlatch_request_for("own", 10000);
    request.flags = REDLATCH_SHARED;
    request.wait_ms = REDLATCH_FOREVER;
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    EXPECT(REDLATCH_HELD_BY_THIS_THREAD,
           redlatch_lock(client, "own", 10000, REDLATCH_FOREVER, &other));
    redlatch_drop(&guard);
    request.flags = 0;
    request.one_of = 2;
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &guard));
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &other));
    redlatch_guard *third = NULL;
    EXPECT(REDLATCH_HELD_BY_THIS_THREAD, redlatch_acquire(client, &request, &third));
    request.wait_ms = 500;
    EXPECT(REDLATCH_HELD, redlatch_acquire(client, &request, &third));
    ASSERT(strcmp(redlatch_last_error(), "this thread holds it itself") == 0);
    redlatch_drop(&guard);
    redlatch_drop(&other);
    EXPECT(REDLATCH_OK, redlatch_lock(client, "own", 10000, REDLATCH_FOREVER, &guard));
    redlatch_drop(&guard);
}

static void texts(void) {
    char *text = NULL;
    EXPECT(REDLATCH_OK, redlatch_nodes(client, &text));
    size_t lines = 0;
    for (char *at = text; *at; at++) lines += *at == '\n';
    ASSERT(lines == count && strstr(text, "connected; redis 7.0.15; round trip "));
    redlatch_free(text);
    ASSERT(strcmp(redlatch_version(), VERSION) == 0);

    /* A failure is still told when what returns no status, or succeeds, has cleaned up. */
    redlatch_client *failed = NULL;
    redlatch_bytes url = redlatch_text("redis://:secret@localhost:x");
    EXPECT(REDLATCH_OK, redlatch_lock(client, "d", 10000, 0, &guard));
    EXPECT(REDLATCH_INVALID, redlatch_client_new(&url, 1, NULL, &failed));
    char *kept = strdup(redlatch_last_error());
    ASSERT(*kept && !strstr(kept, "secret"));
    (void)redlatch_remaining(guard);
    (void)redlatch_fencing_token(guard);
    redlatch_drop(&guard);
    redlatch_client_free(&failed);
    redlatch_client_cancel(NULL);
    ASSERT(strcmp(redlatch_last_error(), kept) == 0);
    free(kept);
}

/* Locks that stay when this process has ended, for who looks at their owners. */
static void owners(void) {
    static redlatch_guard *left[4];
    static redlatch_client *named;
    char name[4][32];
    redlatch_options options = redlatch_default_options();
    options.flags = REDLATCH_NO_RESTART_GUARD;
    options.node_timeout_ms = 1000;
    options.owner = redlatch_text("all");
    EXPECT(REDLATCH_OK, redlatch_client_new(urls, count, &options, &named));
    for (int i = 0; i < 4; i++) {
        snprintf(name[i], sizeof name[i], "owned:%d:%d", i, (int)getpid());
        redlatch_request request = redlatch_request_for(name[i], 40000);
        if (i == 1) request.owner = redlatch_text("mine");
        if (i == 2) request.owner = redlatch_text("");
        EXPECT(REDLATCH_OK, redlatch_acquire(i == 3 ? named : client, &request, &left[i]));
    }
    static char longer[257];
    redlatch_client *made = NULL;
    options.owner.data = longer;
    options.owner.size = sizeof longer;
    EXPECT(REDLATCH_INVALID, redlatch_client_new(urls, count, &options, &made));
}

int main(int argc, char **argv) {
    read_urls(argc, argv);
    ASSERT(strcmp(redlatch_last_error(), "") == 0);
    redlatch_options options = redlatch_default_options();
    options.flags = REDLATCH_NO_RESTART_GUARD | REDLATCH_IO_THREAD;
    options.node_timeout_ms = 1000;
    options.max_ttl_ms = 40000;
    options.key_prefix = redlatch_text("c:");
    options.client_name = redlatch_text("calls");
    options.connect_timeout_ms = 20000;
    options.failover_bound_ms = 12000;
    options.fencing_expiry_ms = 100000;
    options.drift_factor = 0.02;
    options.clock_skew_ms = 2000;
    EXPECT(REDLATCH_OK, redlatch_client_new(urls, count, &options, &client));
    null_pointers();
    wrong_clients();
    other_headers();
    a_group();
    locks();
    several_names();
    tokens(&options);
    released();
    own_locks(&options);
    texts();
    owners();

    /* A guard outlives its client's handle. */
    EXPECT(REDLATCH_OK, redlatch_lock(client, "e", 10000, 0, &guard));
    redlatch_client_free(&client);
    EXPECT(REDLATCH_OK, redlatch_ensure_held(guard));
    EXPECT(REDLATCH_OK, redlatch_release(&guard));
    puts("done");
    return 0;
}
