/* A wait ends after wait_ms, and not before, on nodes that are silent: waits URL... */
#include "expect.h"

static double now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec * 1e3 + (double)time.tv_nsec / 1e6;
}

static void waits(const redlatch_bytes *nodes, size_t nodes_count, uint64_t wait_ms) {
    redlatch_guard *guard = NULL;
    redlatch_client *client = NULL;
    EXPECT(REDLATCH_OK, redlatch_client_new(nodes, nodes_count, NULL, &client));
    double began = now_ms();
    EXPECT(REDLATCH_NO_QUORUM, redlatch_lock(client, "a", 10000, wait_ms, &guard));
    double took = now_ms() - began;
    /* An attempt without a limit takes 2 s here, and 3.3 s on ZooKeeper. */
    if (took < (double)wait_ms || took > (double)wait_ms + 1500)
        fprintf(stderr, "a wait of %llu ms took %.0f\n", (unsigned long long)wait_ms, took);
    redlatch_client_free(&client);
}

int main(int argc, char **argv) {
    redlatch_bytes ensemble = redlatch_text("zk://127.0.0.1:1");
    read_urls(argc, argv);
    waits(urls, count, 200);
    waits(urls, count, 3000);
    waits(&ensemble, 1, 200);
    puts("done");
    return 0;
}
