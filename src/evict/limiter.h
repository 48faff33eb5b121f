/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How many pods end: in a minute of all capabilities together, of one of them and of one namespace, and of one
 * capability at once. An eviction takes its place before it is sent and keeps it unless it is known not to have
 * happened. Pure: monotonic time comes in. Not locked.
 */
#include "policy/victims/may_end.h"

#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

/* 0: any number. */
struct limits {
    uint32_t per_minute;    /* of all capabilities */
    uint32_t for_reclaim;   /* of these, which only ENDER_RECLAIM may use; all but one at most */
    uint32_t per_namespace; /* a minute, of the pods of one */
    struct {
        uint32_t per_minute, at_once;
    } of[ENDER_N];
    int64_t minute_ms; /* 0: a minute */
};

enum limit {
    LIMIT_NONE, /* one more may end */
    LIMIT_AT_ONCE,
    LIMIT_CAPABILITY,
    LIMIT_NAMESPACE,
    LIMIT_CLUSTER,
    LIMIT_N
};
extern const char *const limit_texts[LIMIT_N]; /* for people; constants */

struct limiter;

struct limiter *limiter_new(const struct limits *limits);
void limiter_free(struct limiter *limiter);

/* The first limit that keeps one more pod of that namespace from being ended now. */
enum limit limiter_forbids(const struct limiter *limiter, enum ender ender, const char *ns,
                           int64_t now_ms);

/* An eviction that is about to be sent takes its place. One of these three says how it went. Of each capability one
 * eviction of a pod is under way at a time. */
void limiter_take(struct limiter *limiter, enum ender ender, const char *ns, const char *uid,
                  int64_t now_ms);
void limiter_done(struct limiter *limiter, enum ender ender, const char *uid, int64_t now_ms);
/* The outcome is unknown: it counts as one that was, for a minute, and on if the pod ends by then. */
void limiter_doubt(struct limiter *limiter, enum ender ender, const char *uid, int64_t now_ms);
void limiter_withdraw(struct limiter *limiter, enum ender ender, const char *uid);

/* A pod ends, or has ended, which another replica has evicted. `ns` NULL: unknown; it counts for every namespace. */
void limiter_note_going(struct limiter *limiter, enum ender ender, const char *ns, const char *uid,
                        int64_t now_ms);
void limiter_note_ended(struct limiter *limiter, enum ender ender, const char *ns, const char *uid,
                        int64_t now_ms);
/* What another replica has evicted within the last minute is not known: it may be as many as the capability may, which
 * waits. Others do not: of them, of the namespaces and of the cluster only what is known counts. */
void limiter_fill(struct limiter *limiter, enum ender ender, int64_t now_ms);

/* Whether pods of these namespaces, as many as they are, may be evicted within that time as far as the limits go: if
 * no other pod of them is evicted, and others than reclaim use all but its share. NULL is a namespace of its own. */
bool limiter_lets_end(const struct limiter *limiter, enum ender ender,
                      const char *const *namespaces, size_t n, int64_t within_ms);

/* It counts in the minute that ends now. */
bool limiter_counts(const struct limiter *limiter, const char *uid, int64_t now_ms);
/* It was evicted, or may have been, and is not known to have ended. */
bool limiter_has(const struct limiter *limiter, const char *uid);
/* The UIDs of those: a set. Free with g_hash_table_unref. */
GHashTable *limiter_going(const struct limiter *limiter);

/* What is known of a pod. */
enum limiter_pod { LIMITER_STAYS, LIMITER_ENDS, LIMITER_ENDED };
/* Forgets pods that have ended, and what is long ago. */
void limiter_settle(struct limiter *limiter, enum limiter_pod (*look)(const char *uid, void *data),
                    void *data, int64_t now_ms);

/* Whether no namespace occurs more often than `most`; 0: as often as it likes. NULL is a namespace of its own. */
bool limiter_spreads(const char *const *namespaces, size_t n, uint32_t most);
