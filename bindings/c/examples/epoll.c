/* One thread that waits for any number of locks: each line of standard input names an order, which
 * is charged under the lock of this name. epoll URL... SIGTERM and SIGINT end all waits. */
#define _GNU_SOURCE
#include <pthread.h>
#include <redlatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

/* An order on its way. */
struct order {
    struct order *next;
    void (*go_on)(struct order *);
    redlatch_status status;
    redlatch_guard *guard;
    char *why;
    char name[128];
};

/* What the loop has to look at. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct order *first, **last = &first;
static int wake_up;
/* How many calls have not ended. */
static size_t calls;

static void note(struct order *order, redlatch_status status) {
    order->status = status;
    if (status != REDLATCH_OK) order->why = strdup(redlatch_last_error());
}

/* In a thread of the library, where it only hands the result over: the loop does the rest. */
static void ended(void *data, redlatch_status status, redlatch_guard *guard) {
    struct order *order = data;
    uint64_t one = 1;
    note(order, status);
    order->guard = guard;
    order->next = NULL;
    pthread_mutex_lock(&mutex);
    *last = order;
    last = &order->next;
    /* Under the mutex: who has taken the last order may close it. It never blocks. */
    if (write(wake_up, &one, sizeof one) < 0) abort();
    pthread_mutex_unlock(&mutex);
}

static struct order *take_ended(void) {
    uint64_t times;
    if (read(wake_up, &times, sizeof times) < 0) return NULL;
    pthread_mutex_lock(&mutex);
    struct order *all = first;
    first = NULL;
    last = &first;
    pthread_mutex_unlock(&mutex);
    return all;
}

static void finish(struct order *order) {
    if (order->status == REDLATCH_OK) printf("%s is paid\n", order->name);
    if (order->status != REDLATCH_OK) printf("%s: %s\n", order->name, order->why);
    redlatch_drop(&order->guard);
    free(order->why);
    free(order);
}

/* The lock is held, or the wait for it has failed. */
static void charge(struct order *order) {
    if (order->status == REDLATCH_OK) note(order, redlatch_ensure_held(order->guard));
    if (order->status != REDLATCH_OK) {
        finish(order);
        return;
    }
    printf("charging %s\n", order->name);
    order->go_on = finish;
    /* Once this has succeeded, the order is not the loop's before ended() has handed it over. */
    redlatch_status status = redlatch_start_release(&order->guard, ended, order);
    if (status == REDLATCH_OK) {
        calls++;
    } else {
        note(order, status);
        finish(order);
    }
}

/* Waits for the lock of an order, here for a minute. */
static void begin(const redlatch_client *client, const char *name) {
    struct order *order = calloc(1, sizeof *order);
    if (!order) abort();
    snprintf(order->name, sizeof order->name, "%s", name);
    order->go_on = charge;
    redlatch_request request = redlatch_request_for(order->name, 10000);
    request.flags = REDLATCH_KEEP_ALIVE;
    request.wait_ms = 60000;
    if (redlatch_start(client, &request, ended, order, NULL) == REDLATCH_OK) {
        calls++;
    } else {
        fprintf(stderr, "%s: %s\n", name, redlatch_last_error());
        free(order);
    }
}

/* Begins the orders of the lines that have come. At the end of the input, returns 0. */
static int read_orders(const redlatch_client *client) {
    static char input[4096];
    static size_t used;
    ssize_t more = read(STDIN_FILENO, input + used, sizeof input - used);
    if (more <= 0) return 0;
    used += (size_t)more;
    char *line = input, *end;
    while ((end = memchr(line, '\n', used - (size_t)(line - input)))) {
        *end = '\0';
        begin(client, line);
        line = end + 1;
    }
    used -= (size_t)(line - input);
    memmove(input, line, used);
    return 1;
}

static void watch(int loop, int descriptor) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = descriptor};
    if (epoll_ctl(loop, EPOLL_CTL_ADD, descriptor, &event) != 0) abort();
}

static void run(const redlatch_client *client, const sigset_t *signals) {
    int loop = epoll_create1(EPOLL_CLOEXEC), ends = signalfd(-1, signals, SFD_CLOEXEC), is_open = 1;
    wake_up = eventfd(0, EFD_CLOEXEC);
    watch(loop, wake_up);
    watch(loop, ends);
    watch(loop, STDIN_FILENO);
    while (is_open || calls > 0) {
        struct epoll_event event;
        if (epoll_wait(loop, &event, 1, -1) != 1) continue;
        if (event.data.fd == STDIN_FILENO) is_open = read_orders(client);
        if (event.data.fd == ends) {
            struct signalfd_siginfo info;
            if (read(ends, &info, sizeof info) > 0) redlatch_client_cancel(client);
            is_open = 0;
        }
        if (!is_open) epoll_ctl(loop, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
        if (event.data.fd != wake_up) continue;
        for (struct order *order = take_ended(), *next; order; order = next) {
            next = order->next;
            calls--;
            order->go_on(order);
        }
    }
    close(wake_up);
    close(ends);
    close(loop);
}

int main(int argc, char **argv) {
    /* First: all threads, also the library's, leave the signals to the loop. */
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);

    redlatch_bytes urls[64];
    size_t count = 0;
    for (int i = 1; i < argc && count < 64; i++) urls[count++] = redlatch_text(argv[i]);
    redlatch_client *client = NULL;
    redlatch_status status = redlatch_client_new(urls, count, NULL, &client);
    if (status == REDLATCH_OK) run(client, &signals);
    if (status != REDLATCH_OK) fprintf(stderr, "%s\n", redlatch_last_error());
    redlatch_client_free(&client);
    return status != REDLATCH_OK;
}
