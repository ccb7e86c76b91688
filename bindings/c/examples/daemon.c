/* One of any number of copies works: the one that holds the lock "scheduler". daemon [-d] URL...
 * With -d it goes into the background. SIGTERM and SIGINT end it at once, and release the lock. */
#define _DEFAULT_SOURCE /* daemon() */
#include <pthread.h>
#include <redlatch.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static int is_ending, is_lost;
static redlatch_client *client;

static void set(int *flag) {
    pthread_mutex_lock(&mutex);
    *flag = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

/* No signal handler: this thread waits for the signals, and may call any function. */
static void *end_on_signal(void *signals) {
    int number;
    sigwait(signals, &number);
    set(&is_ending);
    redlatch_client_cancel(client); /* ends the wait for the lock */
    return NULL;
}

static void lost(void *data, const char *why) {
    syslog(LOG_WARNING, "not the leader any more: %s", why);
    set(data);
}

/* Waits for a second; less if the lock is lost or the program is to end. */
static int has_to_stop(void) {
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += 1;
    pthread_mutex_lock(&mutex);
    while (!is_ending && !is_lost && pthread_cond_timedwait(&changed, &mutex, &until) == 0) {}
    int stop = is_ending || is_lost;
    pthread_mutex_unlock(&mutex);
    return stop;
}

/* Returns why it ended: REDLATCH_OK if it has to stop. After REDLATCH_LOST it may lead again. */
static redlatch_status lead(const redlatch_guard *guard) {
    unsigned long long term = redlatch_fencing_token(guard);
    is_lost = 0; /* no callback runs: the guard of the last term is released */
    redlatch_status status = redlatch_on_lost(guard, lost, &is_lost);
    if (status == REDLATCH_OK) syslog(LOG_NOTICE, "the leader, term %llu", term);
    while (status == REDLATCH_OK && (status = redlatch_ensure_held(guard)) == REDLATCH_OK) {
        syslog(LOG_INFO, "a step of the work"); /* gives `term` to what it writes to */
        if (has_to_stop()) break;
    }
    return status;
}

int main(int argc, char **argv) {
    int background = argc > 1 && strcmp(argv[1], "-d") == 0;
    openlog("redlatch-daemon", LOG_PID | (background ? 0 : LOG_PERROR), LOG_DAEMON);

    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &clock);

    /* First: all threads, also the library's, leave the signals to end_on_signal(). */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
    if (background && daemon(0, 0) != 0) return 1;

    /* Behind the fork: a client works only in the process that made it. */
    redlatch_bytes urls[64];
    size_t count = 0;
    for (int i = 1 + background; i < argc && count < 64; i++) {
        urls[count++] = redlatch_text(argv[i]);
    }
    redlatch_status status = redlatch_client_new(urls, count, NULL, &client);
    pthread_t thread;
    int has_thread = status == REDLATCH_OK;
    if (has_thread && pthread_create(&thread, NULL, end_on_signal, &signals) != 0) return 1;

    while (status == REDLATCH_OK || status == REDLATCH_LOST) {
        redlatch_request request = redlatch_request_for("scheduler", 10000);
        request.flags = REDLATCH_KEEP_ALIVE | REDLATCH_FENCED;
        request.wait_ms = REDLATCH_FOREVER;
        request.max_hold_ms = REDLATCH_FOREVER; /* by default, a day */
        redlatch_guard *guard = NULL;
        status = redlatch_acquire(client, &request, &guard);
        if (status != REDLATCH_OK) break;
        status = lead(guard);
        /* The next one leads at once; if too few nodes answer, when the ttl has passed. */
        if (redlatch_release(&guard) != REDLATCH_OK) {
            syslog(LOG_WARNING, "%s", redlatch_last_error());
        }
    }
    if (status != REDLATCH_CANCELLED) {
        /* What waiting does not mend, such as a wrong URL or password. */
        syslog(LOG_ERR, "ends with status %d: %s", status, redlatch_last_error());
        if (has_thread) pthread_kill(thread, SIGTERM);
    }
    if (has_thread) pthread_join(thread, NULL);
    redlatch_client_free(&client);
    return status == REDLATCH_CANCELLED ? 0 : 1;
}
