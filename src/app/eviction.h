/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whom kube-scheduler would end for a pod that is refused everywhere, and where; or why nobody.
 *
 * kube-scheduler decides in sums of a node, names victims by them, and asks preempt, which replaces
 * them by those whose end frees cards (core/victims.h). Both parts are foreseen here, without an
 * effect. What pods without a GPU take counts, but which of them would end is not known.
 *
 * Source of kube-scheduler's part: pkg/scheduler/framework/preemption and plugins/defaultpreemption,
 * v1.36 (PodEligibleToPreemptOthers, SelectVictimsOnNode, pickOneNodeForPreemption).
 */
#include "app/budgets.h"
#include "app/feasibility.h"
#include "json/json.h"

struct evicted_pod {
    char *ns, *name;
    int64_t priority;
};

struct eviction {
    char *why;          /* a sentence: why nobody ends; NULL: somebody does */
    char *node;         /* where; else NULL */
    GArray *pods;       /* struct evicted_pod */
    int64_t violations; /* of budgets */
};

struct eviction_query {
    struct store *copy;            /* under its lock, and not changed */
    const struct budgets *budgets; /* of the same moment, more or less */
    const struct pod_view *pod;
    const struct request *request;
    const struct moment *moment;
};

struct eviction *eviction_find(const struct eviction_query *query);
void eviction_free(struct eviction *eviction); /* NULL is ignored */

/* The key "preemption"; NULL is null. */
void eviction_encode(struct json_writer *writer, const struct eviction *eviction);
/* A line for people; NULL is nothing. */
void eviction_write(GString *text, const struct eviction *eviction);
