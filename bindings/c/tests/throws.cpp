// A callback that throws ends the process, and nothing unwinds through the library: throws URL...
#include <redlatch.h>
#include <stdexcept>
#include <stdio.h>
#include <unistd.h>

static void lost(void *, const char *) {
    throw std::runtime_error("from a callback");
}

static void lost_noexcept(void *, const char *) noexcept {}

int main(int argc, char **argv) {
    redlatch_bytes urls[3];
    redlatch_client *client = nullptr;
    redlatch_guard *guard = nullptr;
    for (int i = 1; i < argc && i < 4; i++) urls[i - 1] = redlatch_text(argv[i]);
    bool watched = redlatch_client_new(urls, 3, nullptr, &client) == REDLATCH_OK &&
                   redlatch_lock(client, "a", 1000, 0, &guard) == REDLATCH_OK &&
                   redlatch_on_lost(guard, lost_noexcept, nullptr) == REDLATCH_OK &&
                   redlatch_on_lost(guard, lost, nullptr) == REDLATCH_OK;
    puts(watched ? "held" : redlatch_last_error());
    fflush(stdout);
    sleep(60);
    return 0;
}
