/* One thread that waits for any number of locks, by libuv: each line of standard input, a pipe, names
 * an order, which is charged under the lock of this name. uv URL... SIGTERM and SIGINT end all waits. */
#include <redlatch.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

/* An order on its way. */
struct order {
    struct order *next;
    void (*go_on)(struct order *);
    redlatch_status status;
    redlatch_guard *guard;
    char *why;
    char name[128];
};

static redlatch_client *client;
static size_t calls;
static int is_ending;
static uv_pipe_t input;
static uv_signal_t terminates, interrupts;
/* What the loop has to look at. */
static uv_mutex_t mutex;
static struct order *first, **last = &first;
static uv_async_t wake_up;

static void note(struct order *order, redlatch_status status) {
    order->status = status;
    if (status != REDLATCH_OK) order->why = strdup(redlatch_last_error());
}

/* In a thread of the library, where it only hands the result over: the loop does the rest. */
static void ended(void *data, redlatch_status status, redlatch_guard *guard) {
    struct order *order = data;
    note(order, status);
    order->guard = guard;
    order->next = NULL;
    uv_mutex_lock(&mutex);
    *last = order;
    last = &order->next;
    /* Under the mutex: who has taken the last order may close it. Several may be one look(). */
    uv_async_send(&wake_up);
    uv_mutex_unlock(&mutex);
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
static void begin(const char *name) {
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

/* Closed only when no call can wake the loop any more. */
static void close_if_over(void) {
    if (is_ending && calls == 0) uv_close((uv_handle_t *)&wake_up, NULL);
}

static void look(uv_async_t *unused) {
    (void)unused;
    uv_mutex_lock(&mutex);
    struct order *order = first, *next;
    first = NULL;
    last = &first;
    uv_mutex_unlock(&mutex);
    for (; order; order = next) {
        next = order->next;
        calls--;
        order->go_on(order);
    }
    close_if_over();
}

static void end_input(void) {
    if (is_ending) return;
    is_ending = 1;
    uv_close((uv_handle_t *)&input, NULL);
    uv_close((uv_handle_t *)&terminates, NULL);
    uv_close((uv_handle_t *)&interrupts, NULL);
    close_if_over();
}

/* What has come of a line whose end has not. */
static char line[sizeof((struct order *)0)->name];
static size_t line_size;

static void make_room(uv_handle_t *unused, size_t unused_size, uv_buf_t *buffer) {
    static char room[4096];
    (void)unused, (void)unused_size;
    *buffer = uv_buf_init(room, sizeof room);
}

static void read_orders(uv_stream_t *unused, ssize_t size, const uv_buf_t *buffer) {
    (void)unused;
    for (ssize_t i = 0; i < size; i++) {
        int is_end = buffer->base[i] == '\n';
        if (!is_end && line_size < sizeof line - 1) line[line_size++] = buffer->base[i];
        if (!is_end) continue;
        line[line_size] = '\0';
        line_size = 0;
        begin(line);
    }
    if (size < 0) end_input();
}

static void cancel(uv_signal_t *unused, int unused_number) {
    (void)unused, (void)unused_number;
    redlatch_client_cancel(client);
    end_input();
}

int main(int argc, char **argv) {
    redlatch_bytes urls[64];
    size_t count = 0;
    for (int i = 1; i < argc && count < 64; i++) urls[count++] = redlatch_text(argv[i]);
    if (redlatch_client_new(urls, count, NULL, &client) != REDLATCH_OK) {
        fprintf(stderr, "%s\n", redlatch_last_error());
        return 1;
    }
    uv_loop_t *loop = uv_default_loop();
    int failed = uv_mutex_init(&mutex);
    failed |= uv_async_init(loop, &wake_up, look);
    failed |= uv_signal_init(loop, &terminates) | uv_signal_start(&terminates, cancel, SIGTERM);
    failed |= uv_signal_init(loop, &interrupts) | uv_signal_start(&interrupts, cancel, SIGINT);
    failed |= uv_pipe_init(loop, &input, 0) | uv_pipe_open(&input, 0);
    failed |= uv_read_start((uv_stream_t *)&input, make_room, read_orders);
    if (failed) abort();
    uv_run(loop, UV_RUN_DEFAULT); /* until nothing is under way */
    uv_loop_close(loop);
    redlatch_client_free(&client);
    return 0;
}
