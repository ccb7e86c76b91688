/* Locks that are lost, because the nodes are stopped: lost URL... */
#include "expect.h"
#include <pthread.h>
#include <sys/wait.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

struct told {
    int times, has_left, times_before_release, is_released;
    redlatch_guard **drops, **releases;
    struct told *by_released;
    char why[200];
};

/* Called behind a callback of the loss that ran when the release began; and no other has begun. */
static void released(void *data, redlatch_status status, redlatch_guard *guard) {
    struct told *told = data;
    ASSERT(status != REDLATCH_OK && guard == NULL);
    pthread_mutex_lock(&mutex);
    ASSERT(told->times == told->times_before_release && told->has_left == told->times);
    told->is_released = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void start_release(redlatch_guard **guard, struct told *told) {
    pthread_mutex_lock(&mutex);
    told->times_before_release = told->times;
    pthread_mutex_unlock(&mutex);
    EXPECT(REDLATCH_OK, redlatch_start_release(guard, released, told));
    ASSERT(*guard == NULL);
}

static void lost(void *data, const char *why) {
    struct told *told = data;
    redlatch_drop(told->drops);
    if (told->releases) start_release(told->releases, told->by_released);
    pthread_mutex_lock(&mutex);
    told->times++;
    strncat(told->why, why, sizeof told->why - 1);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
    usleep(300000); /* a release waits for this */
    pthread_mutex_lock(&mutex);
    told->has_left = 1;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void wait_for(int *flag) {
    pthread_mutex_lock(&mutex);
    while (*flag == 0) pthread_cond_wait(&changed, &mutex);
    pthread_mutex_unlock(&mutex);
}

static struct told *watch(redlatch_guard *guard) {
    struct told *told = calloc(1, sizeof *told);
    ASSERT(told);
    EXPECT(REDLATCH_OK, redlatch_on_lost(guard, lost, told));
    return told;
}

int main(int argc, char **argv) {
    read_urls(argc, argv);
    redlatch_client *client = new_client();
    redlatch_guard *first = NULL, *second = NULL, *third = NULL, *fourth = NULL;
    redlatch_guard *fifth = NULL, *refused = NULL;
    EXPECT(REDLATCH_OK, redlatch_lock(client, "a", 2000, 0, &first));
    EXPECT(REDLATCH_OK, redlatch_lock(client, "b", 2000, 0, &second));
    EXPECT(REDLATCH_OK, redlatch_lock(client, "c", 2000, 0, &third));
    EXPECT(REDLATCH_OK, redlatch_lock(client, "e", 2000, 0, &fourth));
    EXPECT(REDLATCH_OK, redlatch_lock(client, "f", 2000, 0, &fifth));
    struct told *by_fourth = watch(fourth), *by_fifth = watch(fifth);
    struct told *by_first = watch(first), *by_second = watch(second), *by_third = watch(third);
    by_second->drops = &second;
    by_first->releases = &fifth; /* which is lost as well by then, or is about to be */
    by_first->by_released = by_fifth;
    reach("held");

    wait_for(&by_first->times);
    EXPECT(REDLATCH_LOST, redlatch_ensure_held(first));
    EXPECT(REDLATCH_LOST, redlatch_extend(first, 2000));
    ASSERT(redlatch_remaining(first) == 0);
    EXPECT(REDLATCH_NO_QUORUM, redlatch_lock(client, "d", 2000, 0, &refused));
    ASSERT(strstr(redlatch_last_error(), "no quorum") && refused == NULL);
    ASSERT(redlatch_release(&first) != REDLATCH_OK && first == NULL);
    ASSERT(by_first->has_left && by_first->times == 1 && strlen(by_first->why) > 0);
    free(by_first); /* no callback runs or will */

    /* Its own callback has dropped it. */
    wait_for(&by_second->has_left);
    ASSERT(second == NULL);
    wait_for(&by_third->times);
    pid_t child = fork(); /* while a callback runs, most likely: the child does not wait for it */
    if (child == 0) {
        alarm(60);
        redlatch_drop(&third);
        redlatch_client_free(&client);
        _exit(0);
    }
    int status = 1;
    ASSERT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    redlatch_drop(&third);
    ASSERT(by_third->has_left);
    wait_for(&by_fourth->times);
    start_release(&fourth, by_fourth);
    wait_for(&by_fourth->is_released);
    wait_for(&by_fifth->is_released);
    free(by_fourth);
    free(by_fifth);
    free(by_second);
    free(by_third);
    redlatch_client_free(&client);
    puts("done");
    return 0;
}
