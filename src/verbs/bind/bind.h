/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* One call of bind, as the files of this folder share it. The call's own thread, without the store's lock unless
 * it says so. */
#include "verbs/bind/attempt.h"
#include "verbs/bind/waiters.h"
#include "verbs/extender.h"
#include "wire/extender.h"

#define BIND_DRAINING "gpuledger is shutting down; try again"

struct bind {
    struct extender *extender;
    struct json_arena *arena;
    const struct bind_args *args;
    int64_t deadline_ms; /* for everything */
    int64_t start_ms;
    int64_t
        queue_until_ms; /* for waiting; after that the attempt's is for the Binding, and the rest
                             * for asking what became of it */
    int64_t look_ms;    /* when to look again though nothing has woken it */
    int64_t queue_us;   /* waited for the node side */
    int64_t api_us;     /* waited for the API server */
    uint64_t term;      /* in which it was let in, see verbs/leadership.h */
    struct waiting_bind waiter;
    struct pod_view pod;     /* as a GET showed it; without UID: none was needed yet */
    struct pod_rules *rules; /* of that pod; NULL: it cannot be bound any more */
    struct attempt attempt;
};

/* Reads the pod that is to be bound; its strings are the arena's. */
enum outcome bind_get_pod(struct bind *bind, struct pod_view *ret_pod, GError **error);

/* Whether the term that the call began in goes on. */
bool bind_check_term(struct bind *bind, GError **error);

/* Sends the Binding until its fate is known or the time is up; the attempt's result says which. */
bool bind_send(struct bind *bind, GError **error);
