/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Evicts pods, one after the other, so that whoever made them makes them again elsewhere.
 *
 * All are tried with dryRun=All before the first is ended. Pods of DaemonSets, which would come back to
 * their node, and kubelet's own stay; so do those that nobody makes again, unless `force`. The next pod
 * of a controller is evicted when it has as many Ready pods as before the last one. A budget that has
 * nothing to give is waited for. Whatever else goes wrong ends it: what follows stays. One thread.
 */
#include "evict/door.h"

enum drain_state {
    DRAIN_STAYS, /* not tried */
    DRAIN_GONE,  /* it had gone, or ended, by itself */
    DRAIN_EVICTED,
    DRAIN_FAILED,
};
extern const char *const drain_states[]; /* "stays", … */

struct drain_pod {
    const char *ns, *name; /* borrowed */
    const char *uid;       /* another pod of that name is left alone; NULL: any. Borrowed */
    const char *note;      /* why it ends, for an Event; NULL: none. Borrowed */
    bool counted;          /* so many pods of its controller are Ready, itself included: */
    guint n_ready;
    bool alone; /* its end is enough: no successor is waited for */
    enum drain_state state;
    bool lost; /* it has failed since a budget, its end or its successor did not come in time */
    char *why; /* it stays or has failed; NULL: nothing to say. Free with g_free. */
};

struct drain_query {
    struct api_client *client;
    struct store *store; /* these two as struct door_order has them */
    const char *whom;
    struct drain_pod *pods;
    guint n_pods;
    enum ender ender;              /* the rule of which pods stay */
    struct permits *permits;       /* as struct door_order has them */
    struct leadership *leadership; /* likewise */
    uint64_t term;
    bool force;
    int64_t timeout_ms; /* for each pod: for budgets, its end and its successor */
    void (*progress)(void *data, const char *text);
    /* While something is waited for, and right before each eviction; false, with an error: it stops. NULL: it always
     * goes on. */
    bool (*go_on)(void *data, GError **error);
    void *data;
};

/* False, with an error: it stopped before the end. */
bool drain_run(const struct drain_query *query, GError **error);

/* What is left to do for the only pod of the query, which somebody has evicted, or was about to, and who did
 * not see the end: it is waited for, and for its successor, if it has this controller. State DRAIN_STAYS:
 * nobody has evicted it. */
bool drain_finish(const struct drain_query *query, const char *owner, GError **error);
