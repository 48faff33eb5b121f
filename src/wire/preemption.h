/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The body of preempt and the answer to it. Source: k8s.io/kube-scheduler extender/v1,
 * ExtenderPreemptionArgs and ExtenderPreemptionResult; no JSON tags, so keys are matched without
 * regard to case.
 */
#include "json/json.h"

#define PREEMPTION_NODES_MAX 50000    /* in one call */
#define PREEMPTION_VICTIMS_MAX 100000 /* of all nodes together */

/* Victims on one node, by UID, that kube-scheduler or we would end. */
struct preemption_node {
    const char *name;
    const char **uids;
    size_t n_uids;
    int64_t violations; /* of budgets */
    int64_t
        dearest; /* as in struct victims_cost, of those that we would end; kube-scheduler does not know it */
    bool as_named; /* likewise: they are those that kube-scheduler has named */
};

/* Borrowed from the arena. */
struct preemption_args {
    struct pod_view pod;
    /* A node may refuse the pod for a reason that is not a sum of amounts: volumes, ports of the
     * host, claims, where other pods are. */
    bool particular;
    struct preemption_node *nodes;
    size_t n_nodes;
};

/* Takes NodeNameToMetaVictims or NodeNameToVictims; both are an error, neither is no node. A pod
 * without a UID is an error, a null pod is left out. */
bool preemption_args_decode(struct json_arena *arena, const cJSON *body,
                            struct preemption_args *ret_args, GError **error);

/* The other way round: the pod with the fields of its view, and whatever makes it particular by one
 * of its reasons; always NodeNameToMetaVictims. Read again it is the same. */
void preemption_args_encode(struct json_writer *writer, const struct preemption_args *args);

/* Always as NodeNameToMetaVictims, and never a null in it: kube-scheduler does not survive that. */
void preemption_result_encode(struct json_writer *writer, const struct preemption_node *nodes,
                              size_t n);
