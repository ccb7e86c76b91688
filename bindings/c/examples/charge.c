/* Holds "orders:42" while it charges a card: charge URL... */
#include "redlatch.h"
#include <stdio.h>
#include <stdlib.h>

static void lost(void *data, redlatch_bytes why) {
    (void)data;
    fprintf(stderr, "stop: %.*s\n", (int)why.size, why.data);
}

int main(int argc, char **argv) {
    size_t count = (size_t)argc - 1;
    redlatch_bytes *urls = calloc(count + 1, sizeof *urls);
    if (!urls) return 1;
    for (size_t i = 0; i < count; i++) urls[i] = redlatch_text(argv[i + 1]);

    redlatch_client *client = NULL;
    redlatch_lock *lock = NULL;
    redlatch_options options = {0};
    options.without_restart_guard = true; /* only because the nodes of this example have just begun */
    redlatch_status status = redlatch_client_new(urls, count, &options, &client);
    free(urls);
    if (status == REDLATCH_OK) status = redlatch_lock_name(client, "orders:42", 10000, &lock);
    if (status == REDLATCH_OK) status = redlatch_on_lost(lock, lost, NULL);
    if (status == REDLATCH_OK) {
        puts("charging the card");
        status = redlatch_ensure_held(lock); /* before the step that must not run twice */
    }
    if (status == REDLATCH_OK) {
        puts("marking the order as paid");
        status = redlatch_release(lock);
        lock = NULL;
    }
    if (status != REDLATCH_OK) fprintf(stderr, "charge: %s\n", redlatch_last_error());
    redlatch_drop(lock);
    redlatch_client_free(client);
    return status == REDLATCH_OK ? 0 : 1;
}
