/* redlatch: a distributed lock for programs that block.
 *
 * A lock is kept by a majority of N independent Redis or Valkey servers. Errors, times and
 * guarantees are those of the Rust library, whose guide says what a lock promises.
 *
 * Texts have lengths and need no final zero byte: see redlatch_text(). A name may have any bytes.
 * Times are milliseconds. A function that can fail returns a status; redlatch_last_error() says
 * more, of this thread's last call.
 *
 * Threads: a client may be used by any number of threads at once. A lock may be used and released
 * by any thread, by one at a time, except redlatch_ensure_held() and redlatch_remaining(), which
 * may be called beside anything but redlatch_release() and redlatch_drop().
 *
 * fork: a client and its locks work only in the process that made them. In a child, every call
 * returns REDLATCH_OTHER_PROCESS at once and leaves the parent's locks alone; make a new client
 * there. redlatch_drop() and redlatch_client_free() may be called in a child, and free memory only.
 *
 * Signals: a call goes on after a signal handler has returned. No function may be called by one.
 */
#ifndef REDLATCH_H
#define REDLATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct redlatch_client redlatch_client;
typedef struct redlatch_lock redlatch_lock;

/* Bytes, in UTF-8 where they are a text. Zeroed: none. */
typedef struct {
    const char *data;
    size_t size;
} redlatch_bytes;

typedef enum {
    REDLATCH_OK = 0,
    /* Others hold the lock. Not an error. */
    REDLATCH_HELD = 1,
    /* Too few nodes gave an answer that counts: whether the lock is free is not known. */
    REDLATCH_NO_QUORUM = 2,
    /* The lock was held, and is not any more, or may not be. */
    REDLATCH_LOST = 3,
    /* redlatch_client_cancel() was called. */
    REDLATCH_CANCELLED = 4,
    /* An argument cannot be used: a null pointer, a URL, a name, a time. */
    REDLATCH_INVALID = 5,
    /* The client belongs to another process, the parent of this one. */
    REDLATCH_OTHER_PROCESS = 6,
    /* Anything else; the text says what. */
    REDLATCH_OTHER = 7,
    /* A bug of the library. The client must not be used any more. */
    REDLATCH_PANIC = 8
} redlatch_status;

/* How a client talks to its nodes. Zeroed: the defaults. */
typedef struct {
    /* How long a node may take to answer before others decide without it; 50 by default. */
    uint32_t node_timeout;
    /* The longest ttl, 60000 by default. After a restart of a node, its votes count again after
     * this time. */
    uint64_t max_ttl;
    /* Do votes of nodes count at once after a restart? Only for nodes that write each change to
     * disk, and for tests. */
    bool without_restart_guard;
    /* What stands before the name of each lock in the nodes' keys. */
    redlatch_bytes key_prefix;
    /* The name that the nodes show for the connections. */
    redlatch_bytes client_name;
} redlatch_options;

#define REDLATCH_FOREVER UINT64_MAX

/* A lock that is asked for. Zeroed but for name and ttl: as redlatch_try_lock(). */
typedef struct {
    redlatch_bytes name;
    /* How long the nodes keep the lock if it is not extended. */
    uint64_t ttl;
    /* How long to wait while others hold it, in the order in which they asked. */
    uint64_t wait;
    /* Extend it in the background until it is released. */
    bool keep_alive;
    /* Draw a fencing token. */
    bool fenced;
    /* Hold it beside other readers. */
    bool shared;
    /* Hold one of so many slots; 0: the whole lock. */
    uint32_t one_of;
} redlatch_request;

/* Makes a client of these nodes, one URL each, or one for all of a group or an ensemble. `options`
 * may be null. Connects to nothing yet. */
redlatch_status redlatch_client_new(const redlatch_bytes *urls, size_t count,
                                    const redlatch_options *options, redlatch_client **client);

/* Ends all waits of the client, now and from now on, with REDLATCH_CANCELLED. */
void redlatch_client_cancel(const redlatch_client *client);

/* Frees a client. Its locks stay valid, and must be freed by themselves. Null is ignored. */
void redlatch_client_free(redlatch_client *client);

/* Takes a lock. REDLATCH_HELD: others held it for all the time that it waited. */
redlatch_status redlatch_acquire(const redlatch_client *client, const redlatch_request *request,
                                 redlatch_lock **lock);

/* Sets the rest of the lock's time to `ttl`. */
redlatch_status redlatch_extend(redlatch_lock *lock, uint64_t ttl);

/* For how long the lock is certainly held; 0 if it is not. */
uint64_t redlatch_remaining(const redlatch_lock *lock);

/* Is the lock still held? Asks no node. Call it before each step that must not run twice. */
redlatch_status redlatch_ensure_held(const redlatch_lock *lock);

/* The number by which a resource rejects a stale writer; 0 if none was asked for. */
uint64_t redlatch_fencing_token(const redlatch_lock *lock);

/* Which slot of redlatch_request.one_of it is, from 0; UINT32_MAX if none was asked for. */
uint32_t redlatch_slot(const redlatch_lock *lock);

/* Calls `lost` in another thread if the lock is lost before it is released, with the reason. It
 * must not call back, nor throw. Once for each lock. */
redlatch_status redlatch_on_lost(const redlatch_lock *lock,
                                 void (*lost)(void *data, redlatch_bytes why), void *data);

/* Releases the lock on the nodes, and frees it whatever comes of that. REDLATCH_LOST: it was lost
 * before. */
redlatch_status redlatch_release(redlatch_lock *lock);

/* Releases the lock without waiting for the nodes, and frees it. Null is ignored. */
void redlatch_drop(redlatch_lock *lock);

/* The state of each node, a line each, and what is wrong with it. Free it. */
redlatch_status redlatch_nodes(const redlatch_client *client, char **text);

/* Frees a text that redlatch_nodes() has returned. Null is ignored. */
void redlatch_free(char *text);

/* Why this thread's last call has failed, with a final zero byte; empty if it has not. Valid until
 * the thread's next call. */
const char *redlatch_last_error(void);

/* The version of the library: "0.1.0". */
const char *redlatch_version(void);

static inline redlatch_bytes redlatch_text(const char *text) {
    redlatch_bytes bytes = {text, text ? strlen(text) : 0};
    return bytes;
}

/* Takes a lock as soon as nobody holds it, and keeps it alive until it is released. */
static inline redlatch_status redlatch_lock_name(const redlatch_client *client, const char *name,
                                                 uint64_t ttl, redlatch_lock **lock) {
    redlatch_request request = {redlatch_text(name), ttl, REDLATCH_FOREVER, true, false, false, 0};
    return redlatch_acquire(client, &request, lock);
}

/* Takes a lock if nobody holds it. */
static inline redlatch_status redlatch_try_lock(const redlatch_client *client, const char *name,
                                                uint64_t ttl, redlatch_lock **lock) {
    redlatch_request request = {redlatch_text(name), ttl, 0, false, false, false, 0};
    return redlatch_acquire(client, &request, lock);
}

#ifdef __cplusplus
}
#endif

#endif
