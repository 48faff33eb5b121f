/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whom kube-scheduler would end for a pod that is refused everywhere, and where; or why nobody.
 *
 * kube-scheduler decides in sums of a node, names victims by them, and asks preempt, which replaces
 * them by those whose end frees cards (policy/victims/victims.h). Both parts are foreseen here, without an
 * effect. Where the node lacks what pods without a GPU take too, these are read from the cluster, of
 * CPU_VICTIMS_NODES_MAX nodes (explain/cpu_victims.h).
 *
 * Source of kube-scheduler's part: pkg/scheduler/framework/preemption and plugins/defaultpreemption,
 * v1.36 (PodEligibleToPreemptOthers, SelectVictimsOnNode, pickOneNodeForPreemption).
 */
#include "queue/budgets.h"
#include "store/feasibility.h"
#include "json/json.h"

struct evicted_pod {
    char *ns, *name;
    int64_t priority;
    int64_t idle_s; /* for so long, as the source of usage tells; 0: it does not */
};

struct preview {
    char *why;          /* a sentence: why nobody ends; NULL: somebody does */
    char *node;         /* where; else NULL */
    GArray *pods;       /* struct evicted_pod */
    int64_t violations; /* of budgets */
    guint
        n_unread; /* nodes that were passed over, for their pods without a GPU count and were not read */
};

struct preview_query {
    struct store
        *copy; /* the caller's own, not changed; its lock is let go while the cluster answers */
    struct cluster *cluster;       /* that pods without a GPU are read from; NULL: none is */
    const struct budgets *budgets; /* of the same moment, more or less */
    const struct pod_view *pod;
    const struct request *request;
    const struct moment *moment;
};

struct preview *preview_find(const struct preview_query *query);
void preview_free(struct preview *preview); /* NULL is ignored */

/* The key "preemption"; NULL is null. */
void preview_encode(struct json_writer *writer, const struct preview *preview);
/* A line for people; NULL is nothing. */
void preview_write(GString *text, const struct preview *preview);
