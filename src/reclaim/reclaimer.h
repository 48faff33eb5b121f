/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Takes back what elastic quotas have lent: for pods that find no room though their namespaces are
 * within their mins, pods of namespaces above theirs are evicted (explain/reclaim/reclaim_plan.h says which).
 *
 * Whatever must not be forgotten is in one ConfigMap (wire/claim_sheet.h): a claim (wire/claim.h) names the pod, and
 * those that end for it. It is written before the first of them is evicted, keeps the room for the pod, and is taken
 * away when the pod has come, is gone, or has not come in time. Everything else follows from it: a replica that
 * takes over evicts whom the claims name and nobody has evicted yet. Right before each eviction the claim and the pod
 * are read once more, and it is asked whether its namespace has still borrowed as much. What Nodes show of claims
 * decides nothing.
 *
 * A thread of its own. Every replica reads the claims, so that each keeps room by them; the others know them when they
 * take over. It acts only where this replica serves and knows the cluster.
 */
#include "evict/door.h"
#include "reclaim/claim_config_map.h"
#include "store/cluster.h"
#include "verbs/denial.h"
#include "verbs/leadership.h"

struct reclaimer_options {
    int64_t delay_ms; /* for which a pod has waited */
    int64_t at_once, per_minute;
};

struct reclaimer_args {
    struct store *store;
    struct cluster *cluster;
    const struct claim_files *files; /* where the claims are */
    void *files_data;
    struct leadership *leadership; /* NULL: the only replica */
    const struct denials *denials; /* whose pods are placed here; NULL: all schedulers' */
    struct permits *permits; /* shared with what else evicts; NULL: its own, with these options */
    /* As eviction_send, which it mostly is. Pods are read from the cluster. */
    enum eviction (*evict)(void *data, const struct evictee *evictee, bool try, GError **error);
    void *data;
    struct reclaimer_options options;
};

struct reclaimer;

/* Borrows what it is given. */
struct reclaimer *reclaimer_new(const struct reclaimer_args *args);
/* Ends the thread. NULL is ignored. */
void reclaimer_free(struct reclaimer *reclaimer);

bool reclaimer_start(struct reclaimer *reclaimer, GError **error);

/* What the thread does once a second. */
void reclaimer_look(struct reclaimer *reclaimer);
