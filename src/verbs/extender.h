/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The verbs that kube-scheduler calls. Each takes the body it was sent and appends the answer,
 * which is sent with status 200 where it can hold an error: kube-scheduler discards the body of any
 * other status, and with it the reason. Any number of threads may call at once.
 */
#include "store/cluster.h"
#include "verbs/denial.h"
#include "verbs/leadership.h"
#include "verbs/journal.h"
#include "base/metrics.h"
#include "store/store.h"
#include "verbs/bind/waiters.h"
#include "verbs/succession.h"
#include "verbs/wake.h"

/* How prioritize marks nodes, from 0 to RANKING_SCORE_MAX. */
enum prioritize_shape {
    PRIORITIZE_WINNER, /* the best has all, the others nothing */
    PRIORITIZE_SCALED, /* in proportion to what each would lose; 0 is for those that refuse */
};

/* Which pods a call of prioritize is about. */
enum prioritize_pods {
    PRIORITIZE_ALL,
    PRIORITIZE_WITHOUT_GPU, /* another entry of the same scheduler ranks the nodes for the rest */
};

struct extender {
    struct store *store;
    struct cluster *cluster;
    struct leadership *leadership;     /* NULL: the only replica, and then there is no journal either */
    struct journal *journal;
    struct denials *denials; /* NULL: bind believes every call; of a simulation */
    struct wake *wake;       /* NULL: refused pods are left to kube-scheduler */
    enum prioritize_shape shape;
    bool admits;             /* POST /admission/mig is served, see verbs/admission.h */
    int64_t bind_timeout_ms; /* for one bind from first to last, below kube-scheduler's own */
    struct waiters waiters;  /* binds that wait; `max` is set before the first one */
    struct succession *succession; /* NULL: a Lease tells, or nobody can follow */
    gint leaving;            /* atomic: not ready any more; another process may follow already */
    gint draining;           /* atomic: new binds are turned away */
    guint rounds;            /* of extender_reconcile */
};

/* POST …/filter: which of these nodes could hold the pod. Changes nothing but what is known of pods on
 * their way (queue/hints.h). */
void extender_filter(struct extender *extender, const char *body, size_t length, GString *reply);

/* POST …/prioritize and …/prioritize-cpu: how good each of these nodes is for the pod. Changes
 * nothing. The answer has no place for an error: false, and nothing is appended. */
bool extender_prioritize(struct extender *extender, enum prioritize_pods pods, const char *body,
                         size_t length, GString *reply, GError **error);

/* POST …/preempt: whose end on which node would make room for the pod, given what kube-scheduler has
 * named. Changes nothing but what is known of its last answer (queue/clearings.h). False as above. */
bool extender_preempt(struct extender *extender, const char *body, size_t length, GString *reply,
                      GError **error);

/* POST …/bind: picks the card, books it, writes card and node in one Binding. */
void extender_bind(struct extender *extender, const char *body, size_t length, GString *reply);

/* Settles allocations that the watch has not confirmed for `age_ms`, by asking the API server.
 * Called from time to time by one thread. Returns how many it settled; draining, or
 * after some seconds, it asks for no more, since each call may take seconds. */
unsigned extender_reconcile(struct extender *extender, int64_t age_ms);
