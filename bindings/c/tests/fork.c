/* What a forked child frees is not lost there, but for what threads of the parent had: fork URL... */
#include "expect.h"
#include <sys/wait.h>

static void ignore(void *data, const char *why) {
    (void)data, (void)why;
}

int main(int argc, char **argv) {
    read_urls(argc, argv);
    redlatch_client *client = new_client();
    redlatch_guard *kept = NULL, *watched = NULL;
    redlatch_request request = redlatch_request_for("watched", 10000);
    EXPECT(REDLATCH_OK, redlatch_lock(client, "kept", 10000, 30000, &kept));
    EXPECT(REDLATCH_OK, redlatch_acquire(client, &request, &watched));
    EXPECT(REDLATCH_OK, redlatch_on_lost(watched, ignore, NULL));
    char *token = NULL;
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        redlatch_drop(&kept);
        EXPECT(REDLATCH_OTHER_PROCESS, redlatch_into_token(&watched, &token));
        ASSERT(watched == NULL && token == NULL);
        redlatch_client_free(&client);
        _exit(0);
    }
    int status = 1;
    ASSERT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    EXPECT(REDLATCH_OK, redlatch_release(&kept));
    EXPECT(REDLATCH_OK, redlatch_release(&watched));
    redlatch_client_free(&client);
    puts("done");
    return 0;
}
