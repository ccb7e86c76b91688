/* redlatch: a distributed lock. README.md has an example, a daemon, event loops, and how to link.
 *
 * Guarantees, times and errors are those of the Rust library: src/guide/guarantees.md.
 *
 * Texts that are passed have a length (redlatch_text() measures one) and are UTF-8, except names of
 * locks, key prefixes and owners, which may have any bytes. They are copied. Texts that come back
 * end with a zero byte. Times are milliseconds.
 *
 * Statuses: a function that can fail returns one. redlatch_last_error() has the text of this
 * thread's last call that returned another one than REDLATCH_OK; what returns no status leaves it
 * as it was, so cleaning up does not overwrite it.
 *
 * Threads: any number of them may use a client, and any thread may use a guard, whichever took the
 * lock. redlatch_extend(), redlatch_release(), redlatch_start_release(), redlatch_drop(),
 * redlatch_into_token(), redlatch_client_free() and redlatch_call_free() need theirs alone: no other
 * thread is in a call with it. A thread in a call must not be ended by pthread_cancel() or pthread_exit(), nor leave it
 * by longjmp().
 *
 * Event loops: redlatch_start() waits for a lock without a thread, and calls back;
 * redlatch_start_release() releases it so.
 *
 * Callbacks of a client run one after another, in one thread of the library. They may call the
 * library, also what frees what they were given, and must not throw, nor wait for another callback.
 * One that takes long delays the others and nothing else: let it hand over, and return.
 *
 * fork: a client and its guards work only in the process that made them, so a daemon makes its
 * client after its last fork or daemon(). In a child, every call with them fails at once with
 * REDLATCH_OTHER_PROCESS, waits for nothing, and leaves the parent's locks alone; what the parent
 * has started calls back there, and never in the child; redlatch_drop(),
 * redlatch_release() and redlatch_client_free() free a part of the memory: what the parent's
 * threads use stays, as they may have been half way through a change. A child may make a client of
 * its own. Programs that are started by exec inherit no connection.
 *
 * Descriptors: 0 to 2 are yours, also if you have closed them. Where one of them is free when the
 * library opens a descriptor, it puts /dev/null there, which exec closes.
 *
 * Signals: a call goes on after a signal handler has returned. No function may be called in one; to
 * end a wait, call redlatch_client_cancel() in a thread that waits for signals (sigwait). The
 * library raises no SIGPIPE, and its threads have the signal mask of the thread whose call started
 * them: block first what no thread of yours but one is to get.
 */
#ifndef REDLATCH_H
#define REDLATCH_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result must be looked at: the work goes on only after REDLATCH_OK. */
#if defined(__GNUC__)
#define REDLATCH_CHECKED __attribute__((warn_unused_result))
#else
#define REDLATCH_CHECKED
#endif

typedef struct redlatch_client redlatch_client;
/* A lock that is held, or was until it was lost. */
typedef struct redlatch_guard redlatch_guard;
/* A call that was started, by which it can be cancelled. */
typedef struct redlatch_call redlatch_call;

typedef struct redlatch_bytes {
    const char *data;
    size_t size;
} redlatch_bytes;

/* An int, because the size of an enum depends on the compiler's options. A later version may have
 * more: treat an unknown one as REDLATCH_OTHER. */
typedef int redlatch_status;
enum {
    REDLATCH_OK = 0,
    /* Others hold the lock, or threads of this client: the text says which. Not a fault. */
    REDLATCH_HELD = 1,
    /* Too few nodes gave an answer that counts, or not in time. The text has a report of each. */
    REDLATCH_NO_QUORUM = 2,
    /* The lock is not held any more, or may not be: others may have it. */
    REDLATCH_LOST = 3,
    /* redlatch_client_cancel() or redlatch_call_cancel() was called. */
    REDLATCH_CANCELLED = 4,
    /* An argument cannot be used: a null pointer, a URL, a name, a time, a file. */
    REDLATCH_INVALID = 5,
    /* The client belongs to the process that forked this one. */
    REDLATCH_OTHER_PROCESS = 6,
    /* Anything else; the text says what. */
    REDLATCH_OTHER = 7,
    /* A bug of the library. Free what you have of it. */
    REDLATCH_PANIC = 8,
    /* This thread would wait for a lock that it has taken itself. A mistake of the program. */
    REDLATCH_HELD_BY_THIS_THREAD = 9
};

/* Flags of redlatch_options. An unknown flag is REDLATCH_INVALID. */
/* Nodes have a vote right after they have started, not only max_ttl_ms later: for servers that
 * write each change to disk before they answer, and for tests with servers that just began. The
 * same in all programs. */
#define REDLATCH_NO_RESTART_GUARD 1u
/* A thread of the library does the input and output, so that a thread of yours that is stopped in a
 * call (by a slow signal handler, a debugger, a low priority) delays no other. */
#define REDLATCH_IO_THREAD 2u

/* How a client talks to its nodes. Begin with redlatch_default_options(), which sets `size`: by
 * that a program works with a later library, where this has more members. */
typedef struct redlatch_options {
    size_t size;
    uint32_t flags;
    /* How long a node may take to answer before others decide without it; 0: 50. */
    uint32_t node_timeout_ms;
    /* The longest ttl, and how long a node that has restarted has no vote; 0: 60000. The same in
     * all programs that share locks. */
    uint64_t max_ttl_ms;
    /* What stands before each lock's name in the nodes' keys. The same in all programs. */
    redlatch_bytes key_prefix;
    /* The name of the connections in CLIENT LIST. */
    redlatch_bytes client_name;
    /* TLS, for rediss:// and zks:// URLs: files in PEM format. Without a ca_file, the system's
     * certificates are trusted. `certificate` and `key` are the client's. */
    redlatch_bytes ca_file;
    redlatch_bytes certificate;
    redlatch_bytes key;
    /* How long one attempt to connect may take; 0: 2000, or ten node_timeout_ms if that is more. */
    uint64_t connect_timeout_ms;
    /* Of groups with replicas: how long a master that was replaced may still carry out commands; 0:
     * 15000. Not used with ?replicas= in the URL. The same in all programs. */
    uint64_t failover_bound_ms;
    /* How long the counters of fencing tokens live after a grant; 0: 7 days, or max_ttl_ms if that
     * is more. The same in all programs: the shortest counts. */
    uint64_t fencing_expiry_ms;
    /* Of ZooKeeper: how long the ensemble keeps the locks of a program that has died; 0: 10000. */
    uint64_t session_timeout_ms;
    /* By what part the clocks of two machines may run apart, up to 0.5; 0: 0.01. */
    double drift_factor;
    /* The owner of locks whose request names none, as `redlatch inspect` shows it: at most 256
     * bytes. A null pointer: `host:pid` of this process; redlatch_text(""): none. Whoever may read
     * the nodes' keys reads it. */
    redlatch_bytes owner;
    /* Of groups with replicas: how far apart the clocks of two servers are at most; 0: 1000. The
     * same in all programs. */
    uint64_t clock_skew_ms;
} redlatch_options;

#define REDLATCH_FOREVER UINT64_MAX

/* Flags of redlatch_request. An unknown flag is REDLATCH_INVALID. */
/* Extend the lock by its ttl in the background until it is released, lost, or max_hold_ms old. The
 * ttl must be a little more than three node_timeout_ms. */
#define REDLATCH_KEEP_ALIVE 1u
/* Draw a fencing token. */
#define REDLATCH_FENCED 2u
/* Hold it beside other readers: those that ask with this flag. */
#define REDLATCH_SHARED 4u

/* A lock that is asked for. Begin with redlatch_request_for(), which sets `size`. */
typedef struct redlatch_request {
    size_t size;
    uint32_t flags;
    /* Hold one of so many slots, 1 to 1024; 0: the whole lock. */
    uint32_t one_of;
    redlatch_bytes name;
    /* How long the nodes keep the lock if it is not extended. */
    uint64_t ttl_ms;
    /* How long to wait, in the order in which programs asked; 0: one attempt. With REDLATCH_FOREVER
     * also while too few nodes answer, unless waiting cannot help (a wrong password), or this
     * thread has taken the lock itself. With a limit, REDLATCH_NO_QUORUM at once if servers that
     * have just begun get their vote only a second or more after it. */
    uint64_t wait_ms;
    /* For how long extensions keep it in all, at least ttl_ms; 0: no limit, but a day with
     * REDLATCH_KEEP_ALIVE. */
    uint64_t max_hold_ms;
    /* A label for people who look at the lock: `redlatch inspect`. At most 256 bytes. A null
     * pointer: the client's; redlatch_text(""): none. */
    redlatch_bytes owner;
    /* Further locks, as many as more_count, that are held together with `name`: all or none, by one
     * guard. Requests that name some of the same locks cannot deadlock. Without REDLATCH_SHARED and
     * one_of. */
    const redlatch_bytes *more;
    size_t more_count;
} redlatch_request;

/* Makes a client of these nodes, one URL each, or one for a whole group or ensemble. `options` may
 * be null. Connects to nothing yet. On failure *client is null. */
REDLATCH_CHECKED redlatch_status redlatch_client_new(const redlatch_bytes *urls, size_t count,
                                                     const redlatch_options *options,
                                                     redlatch_client **client);

/* Ends all calls that take a lock, now and from now on, with REDLATCH_CANCELLED. Waits for nothing.
 * Locks stay held. The calls have returned only when their threads say so: join them before
 * redlatch_client_free(). Those that were started have ended when they have called back. Null is
 * ignored. */
void redlatch_client_cancel(const redlatch_client *client);

/* Frees a client, and sets *client to null. Its guards stay as they are, and are released by
 * themselves; calls that were started go on, and call back. Null is ignored. */
void redlatch_client_free(redlatch_client **client);

/* Takes a lock. REDLATCH_HELD: it was held for all of wait_ms; redlatch_last_error() says whether
 * by others, by another thread of this client, or by this thread itself. Unless REDLATCH_OK, *guard
 * is null.
 *
 * A lock is not re-entrant. REDLATCH_HELD_BY_THIS_THREAD, at once and only with REDLATCH_FOREVER:
 * this thread has taken the lock by this client, and the guard still exists; or it has a share of
 * it, and wants the whole lock or a share of the other kind; or it has all of the permits of which
 * it wants one. If another thread has that guard by now and releases it, wait with a limit. */
REDLATCH_CHECKED redlatch_status redlatch_acquire(const redlatch_client *client,
                                                  const redlatch_request *request,
                                                  redlatch_guard **guard);

/* Takes a lock as redlatch_acquire() does, without a thread that waits: for event loops, and for
 * thousands of waits. It begins here, and takes its place in the queue. REDLATCH_OK: `done` is going
 * to be called once, whatever comes of the call, and not in here. Another status: nothing has begun,
 * and `done` is not called. The request and its texts are copied, and may be freed at once.
 *
 * `done` gets what redlatch_acquire() returns, and while it runs redlatch_last_error() has the text;
 * that of REDLATCH_HELD says whether others hold the lock, or this client itself.
 * After REDLATCH_OK the guard, which otherwise is null, belongs to the program: one that nobody takes
 * keeps the lock, for a day with REDLATCH_KEEP_ALIVE, so give it up where it is not wanted any more.
 * See at the top how callbacks run. It may come before redlatch_start() has returned in its own
 * thread, yet never before *call is written. What it is to see besides, write before the call, or
 * under a mutex that both take.
 *
 * `call` may be null. *call is for redlatch_call_cancel(), and is freed by redlatch_call_free(),
 * before or after the end of the call. Unless REDLATCH_OK, *call is null.
 *
 * The lock belongs to no thread, so REDLATCH_HELD_BY_THIS_THREAD is not a result. A program that
 * holds a lock and starts a wait for it without a limit has it when it has released it. */
typedef void (*redlatch_done_callback)(void *data, redlatch_status status, redlatch_guard *guard);
REDLATCH_CHECKED redlatch_status redlatch_start(const redlatch_client *client,
                                                const redlatch_request *request,
                                                redlatch_done_callback done, void *data,
                                                redlatch_call **call);

/* Ends a call that was started: `done` is then called with REDLATCH_CANCELLED, soon; or with
 * REDLATCH_OK and the guard, if the lock was just granted. Nothing is left on the nodes. Waits for
 * nothing, and may be called at any time, by any thread, more than once. A call that has ended and
 * null are ignored. */
void redlatch_call_cancel(const redlatch_call *call);

/* Frees what cancels a call, and sets *call to null. The call goes on. Null is ignored. */
void redlatch_call_free(redlatch_call **call);

/* Extends the lock to ttl_ms from now; never shortens it. REDLATCH_NO_QUORUM, REDLATCH_INVALID:
 * it is held as before, until redlatch_remaining() is 0. */
REDLATCH_CHECKED redlatch_status redlatch_extend(redlatch_guard *guard, uint64_t ttl_ms);

/* For how long the lock is certainly held from now; 0 if it is not. Asks no node. */
uint64_t redlatch_remaining(const redlatch_guard *guard);

/* REDLATCH_OK: the lock is still held. Asks no node and does not wait: call it before each step
 * that must not run twice. A lock that was lost does not come back. */
REDLATCH_CHECKED redlatch_status redlatch_ensure_held(const redlatch_guard *guard);

/* The number, above 0, that grows with each grant, by which a resource refuses a writer of the
 * past; 0 without REDLATCH_FENCED. */
uint64_t redlatch_fencing_token(const redlatch_guard *guard);

/* Which slot of one_of it is, from 0; UINT32_MAX if none was asked for. */
uint32_t redlatch_slot(const redlatch_guard *guard);

/* Calls `lost` once, in a thread of the library, if the lock is lost before it is released; `why`
 * is valid meanwhile. See at the top how callbacks run; this one may redlatch_drop() the guard.
 * redlatch_release() and redlatch_drop() in another thread wait for a callback that runs: after them
 * none runs or will, and `data` may be freed. Does not keep the lock alive. */
typedef void (*redlatch_lost_callback)(void *data, const char *why);
REDLATCH_CHECKED redlatch_status redlatch_on_lost(const redlatch_guard *guard,
                                                  redlatch_lost_callback lost, void *data);

/* Releases the lock, waits for the nodes' answers, frees the guard and sets *guard to null,
 * whatever comes of that. REDLATCH_LOST: it was lost before; others may have worked too.
 * REDLATCH_NO_QUORUM: the lock ends with its ttl at the latest. REDLATCH_INVALID: *guard is null,
 * as after an earlier release. Other copies of the pointer must not be used any more. */
redlatch_status redlatch_release(redlatch_guard **guard);

/* Releases the lock as redlatch_release() does, without a thread that waits for the nodes' answers.
 * Frees the guard and sets *guard to null, unless `done` is null. REDLATCH_OK: `done` gets what
 * redlatch_release() returns, and null; redlatch_start() says when, and in which thread. No callback
 * of redlatch_on_lost() begins after this, and none runs any more when `done` is called. Another
 * status: `done` is not called, and the lock was given up as by redlatch_drop(). */
REDLATCH_CHECKED redlatch_status redlatch_start_release(redlatch_guard **guard,
                                                        redlatch_done_callback done, void *data);

/* Releases the lock without waiting for the nodes, frees the guard and sets *guard to null. A
 * process that exits right after it may leave the lock to its ttl: then use redlatch_release().
 * Null is ignored. */
void redlatch_drop(redlatch_guard **guard);

/* Gives the lock away and keeps it held: redlatch_resume() takes it over by *token, in this process
 * or in another one. Frees the guard and sets *guard to null. The lock is not extended from here on:
 * its ttl is how long the other may take. The token is a word of ASCII, and a secret: whoever has it
 * has the lock. Free it with redlatch_free(). After a failure *token is null, and the lock is given
 * up as by redlatch_drop(), unless `token` was null. REDLATCH_INVALID: a lock on ZooKeeper, or a
 * share that other threads of this client have too. */
REDLATCH_CHECKED redlatch_status redlatch_into_token(redlatch_guard **guard, char **token);

/* Takes over a lock by its token, and extends it to the request's ttl_ms. The request has the same
 * names as the one that took it, and the client the same key_prefix. It does not wait. What the
 * lock is (fenced, shared, one of slots) and its owner are those of the token; REDLATCH_KEEP_ALIVE
 * and max_hold_ms are the request's. REDLATCH_LOST: nobody holds it any more. REDLATCH_NO_QUORUM:
 * it is as before; try again. REDLATCH_INVALID: no token, or one of other names. Unless
 * REDLATCH_OK, *guard is null. */
REDLATCH_CHECKED redlatch_status redlatch_resume(const redlatch_client *client,
                                                 const redlatch_request *request,
                                                 redlatch_bytes token, redlatch_guard **guard);

/* The state of each node, a line each, with what is wrong with it. Asks the nodes. Free the text
 * with redlatch_free(). On failure *text is null. */
REDLATCH_CHECKED redlatch_status redlatch_nodes(const redlatch_client *client, char **text);

/* Frees a text of redlatch_nodes() or redlatch_into_token(). Null is ignored. */
void redlatch_free(char *text);

/* The text of this thread's last call that returned another status than REDLATCH_OK. Empty if there
 * was none. Valid until the thread's next such call. Has no password. */
const char *redlatch_last_error(void);

/* The version of the library that runs, such as "0.1.0". */
const char *redlatch_version(void);

/* A text that ends with a zero byte. */
static inline redlatch_bytes redlatch_text(const char *text) {
    redlatch_bytes bytes;
    bytes.data = text;
    bytes.size = text ? strlen(text) : 0;
    return bytes;
}

static inline redlatch_options redlatch_default_options(void) {
    redlatch_options options;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    return options;
}

/* One attempt to take the whole lock of this name, which is not kept alive. `name` is not copied
 * before redlatch_acquire() or redlatch_start(). */
static inline redlatch_request redlatch_request_for(const char *name, uint64_t ttl_ms) {
    redlatch_request request;
    memset(&request, 0, sizeof request);
    request.size = sizeof request;
    request.name = redlatch_text(name);
    request.ttl_ms = ttl_ms;
    return request;
}

/* Takes a lock, waiting for up to wait_ms, and keeps it alive until it is released. */
REDLATCH_CHECKED static inline redlatch_status redlatch_lock(const redlatch_client *client,
                                                             const char *name, uint64_t ttl_ms,
                                                             uint64_t wait_ms,
                                                             redlatch_guard **guard) {
    redlatch_request request = redlatch_request_for(name, ttl_ms);
    request.wait_ms = wait_ms;
    request.flags = REDLATCH_KEEP_ALIVE;
    return redlatch_acquire(client, &request, guard);
}

#ifdef __cplusplus
}
#endif

#endif
