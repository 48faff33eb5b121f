/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How often the API server is asked about a pod because somebody has called bind with a name that
 * the watch has not shown: a bucket of tokens that fills with time. Whom filter was asked about has
 * another bucket than who comes from nowhere, so that a stranger's flood leaves kube-scheduler its
 * own; pods that the watch has shown need none.
 *
 * No clock of its own. Guarded by the store's lock. All zero is full.
 */
#include <stdbool.h>
#include <stdint.h>

enum lookups_for {
    LOOKUPS_STRANGER,
    LOOKUPS_FILTERED, /* filter was asked about it, see queue/books/passes.h */
    LOOKUPS_N
};

#define LOOKUPS_STRANGER_BURST 50
#define LOOKUPS_STRANGER_PER_S 10
/* More than kube-scheduler binds in a second without being told to (50). */
#define LOOKUPS_FILTERED_BURST 1000
#define LOOKUPS_FILTERED_PER_S 200

struct lookups {
    struct {
        int64_t missing; /* thousandths of tokens that have been taken and not come back */
        int64_t at_ms;   /* when that was so; monotonic */
    } buckets[LOOKUPS_N];
};

/* Whether one more may be made. */
bool lookups_take(struct lookups *lookups, enum lookups_for whom, int64_t now_ms);
