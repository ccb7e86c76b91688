/* The sizes and the places of all members, as the library prints its own; and the numbers. */
#include "expect.h"
#define SIZE(name) printf(#name " %zu\n", sizeof(redlatch_##name))
#define MEMBER(name, member) printf(#name "." #member " %zu\n", offsetof(redlatch_##name, member))

int main(void) {
    SIZE(bytes), MEMBER(bytes, data), MEMBER(bytes, size);
    SIZE(options), MEMBER(options, size), MEMBER(options, flags), MEMBER(options, node_timeout_ms);
    MEMBER(options, max_ttl_ms), MEMBER(options, key_prefix), MEMBER(options, client_name);
    MEMBER(options, ca_file), MEMBER(options, certificate), MEMBER(options, key);
    MEMBER(options, connect_timeout_ms), MEMBER(options, failover_bound_ms);
    MEMBER(options, fencing_expiry_ms), MEMBER(options, session_timeout_ms);
    MEMBER(options, drift_factor), MEMBER(options, owner), MEMBER(options, clock_skew_ms);
    SIZE(request), MEMBER(request, size), MEMBER(request, flags), MEMBER(request, one_of);
    MEMBER(request, name), MEMBER(request, ttl_ms), MEMBER(request, wait_ms);
    MEMBER(request, max_hold_ms), MEMBER(request, owner), MEMBER(request, more);
    MEMBER(request, more_count);
    printf("status %zu: %d %d %d %d %d %d %d %d %d %d\n", sizeof(redlatch_status), REDLATCH_OK,
           REDLATCH_HELD, REDLATCH_NO_QUORUM, REDLATCH_LOST, REDLATCH_CANCELLED, REDLATCH_INVALID,
           REDLATCH_OTHER_PROCESS, REDLATCH_OTHER, REDLATCH_PANIC, REDLATCH_HELD_BY_THIS_THREAD);
    printf("flags: %u %u %u %u %u\n", REDLATCH_NO_RESTART_GUARD, REDLATCH_IO_THREAD,
           REDLATCH_KEEP_ALIVE, REDLATCH_FENCED, REDLATCH_SHARED);
    return 0;
}
