/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What all capabilities that evict pods share in one process: the limits (evict/limiter.h), which capability only
 * observes, how long a pod has to have run, and whether evictions are stopped (evict/stop_key.h). Any thread; its lock
 * may be taken under the store's, and no other under it.
 */
#include "core/item_list.h"
#include "evict/limiter.h"

/* Names of capabilities, "plans,reclaim", into an array of ENDER_N bool. */
extern const struct item_list item_list_capabilities;

struct permits;

struct permits_options {
    struct limits limits;
    bool observes[ENDER_N];
    bool stopped;                 /* until permits_stop or permits_hear says otherwise */
    int64_t stale_ms;             /* so old, what was heard counts no more; 0: it never does */
    int64_t min_runtime_ms;       /* of a pod that is moved or gives back */
    int64_t (*clock)(void *data); /* monotonic milliseconds; NULL: clock_ms */
    void *data;
};

struct permits *permits_new(const struct permits_options *options);
void permits_free(struct permits *permits); /* NULL is ignored */

/* The capability decides, logs and counts, and no pod ends. NULL permits: it does not only observe. */
bool permits_observe(const struct permits *permits, enum ender ender);
/* How long a pod that kubelet has had since then (Unix time; 0: not yet) has still to run before it may be evicted;
 * at most the whole minimum. */
#define PERMITS_YOUNG "it has run for less than --evictions-min-runtime"
int64_t permits_young_ms(const struct permits *permits, enum ender ender, int64_t started_s);

/* `why` NULL: evictions may be made. Otherwise none is from here on: why, for people. */
void permits_stop(struct permits *permits, const char *why);
/* The same, as it was at that time of their clock. */
void permits_hear(struct permits *permits, const char *why, int64_t at_ms);
/* Why no pod ends; NULL: evictions may be made. Free with g_free. */
char *permits_why_stopped(struct permits *permits);

/* Which limit keeps one more pod of that namespace from being evicted now. */
enum limit permits_forbid(struct permits *permits, enum ender ender, const char *ns);
/* The same, and without one the eviction takes its place, which one of limiter_done, _doubt and _withdraw ends. */
enum limit permits_take(struct permits *permits, enum ender ender, const char *ns, const char *uid);

/* Whether this is to be said of the pod in an Event: not if the same was within the last ten minutes, or too much is. */
#define PERMITS_TOLD_MAX 1024
bool permits_may_tell(struct permits *permits, const char *uid, const char *what);

/* The limiter, locked, and what its clock says. */
struct limiter *permits_lock(struct permits *permits, int64_t *ret_now_ms);
void permits_unlock(struct permits *permits);
