/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Workloads that have something to be done for: an answer, or a promise to be remembered. So many for each
 * namespace; what is beyond is left out until there is room, and is then to be listed again. They are
 * handed out one namespace after the other, so that none waits for all of another's. Pure; under the
 * owner's lock.
 */
#include <glib.h>
#include <stdbool.h>
#include <stdint.h>

#define WAITING_MAX 10000
#define WAITING_PER_NAMESPACE 1000

enum waiting_for {
    WAITING_ANSWER,
    WAITING_MEMORY, /* it was let in before; these come first */
};

struct waiting_workload {
    char *uid, *ns, *name;
    enum waiting_for what;
    int64_t since_s;       /* Unix time at which its quota was reserved */
    int64_t not_before_ms; /* monotonic */
};

struct waiting;
struct waiting *waiting_new(void);
void waiting_free(struct waiting *waiting);

/* Copies it, or notes what has changed; false: there is no room. */
bool waiting_put(struct waiting *waiting, const struct waiting_workload *workload);
void waiting_remove(struct waiting *waiting, const char *uid);
/* It is not handed out before then; nothing if it is not there. */
void waiting_pause(struct waiting *waiting, const char *uid, int64_t not_before_ms);
/* Somebody was left out, and half of the room is free again; says so once. */
bool waiting_missed(struct waiting *waiting);

/* Lists: what is not put again between the two goes. */
void waiting_begin(struct waiting *waiting);
void waiting_end(struct waiting *waiting);

/* The next of those that are due, at most `max`; struct waiting_workload *, copies that are the caller's
 * (g_ptr_array_unref). `ret_next_ms`: when the next one is due that is not among them; INT64_MAX: none. */
GPtrArray *waiting_next(const struct waiting *waiting, guint max, int64_t now_ms,
                        int64_t *ret_next_ms);
