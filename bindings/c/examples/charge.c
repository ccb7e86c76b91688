/* Holds "orders:42" while it charges a card: charge URL... */
#include <redlatch.h>
#include <stdio.h>

int main(int argc, char **argv) {
    redlatch_bytes urls[64];
    size_t count = 0;
    for (int i = 1; i < argc && count < 64; i++) urls[count++] = redlatch_text(argv[i]);

    redlatch_client *client = NULL;
    redlatch_guard *guard = NULL;
    redlatch_status status = redlatch_client_new(urls, count, NULL, &client);
    /* Kept alive, with a ttl of 10 s. Waits for up to 5 s if others hold it. */
    if (status == REDLATCH_OK) status = redlatch_lock(client, "orders:42", 10000, 5000, &guard);
    if (status == REDLATCH_OK) {
        puts("charging the card");
        status = redlatch_ensure_held(guard); /* before the step that must not run twice */
    }
    if (status == REDLATCH_OK) {
        puts("marking the order as paid");
        status = redlatch_release(&guard);
    }
    if (status != REDLATCH_OK) fprintf(stderr, "charge: %s\n", redlatch_last_error());
    redlatch_drop(&guard); /* null, or after a failure */
    redlatch_client_free(&client);
    return status == REDLATCH_OK ? 0 : 1;
}
