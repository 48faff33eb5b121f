/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The verbs that kube-scheduler calls. Each takes the body it was sent and appends the answer,
 * which is always sent with status 200: kube-scheduler discards the body of any other status, and
 * with it the reason. Any number of threads may call at once.
 */
#include "app/cluster.h"
#include "app/fence.h"
#include "app/journal.h"
#include "app/metrics.h"
#include "app/store.h"
#include "app/wake.h"

struct extender {
    struct store *store;
    struct cluster *cluster;
    struct fence *fence;     /* NULL: the only replica, and then there is no journal either */
    struct journal *journal;
    struct wake *wake;       /* NULL: refused pods are left to kube-scheduler */
    bool filter_books;       /* kube-scheduler knows no bind of ours, see app/predicate.h */
    int64_t bind_timeout_ms; /* for one bind from first to last, below kube-scheduler's own */
    gint draining;           /* atomic: new binds are turned away */
};

/* POST …/filter: which of these nodes could hold the pod. Changes nothing. */
void extender_filter(struct extender *extender, const char *body, size_t length, GString *reply);

/* POST …/bind: picks the card, books it, writes card and node in one Binding. */
void extender_bind(struct extender *extender, const char *body, size_t length, GString *reply);

/* Settles allocations that the watch has not confirmed for `age_ms`, by asking the API server.
 * Called from time to time by one thread. Returns how many it settled; draining, it asks for no
 * more, since each call may take seconds. */
unsigned extender_settle(struct extender *extender, int64_t age_ms);
