/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Whether nodes are on their way, by what autoscalers tell; for a certain pod, or at all. Somebody who
 * would evict pods to make room may then wait for the nodes instead. Pure.
 *
 * Source: cluster-autoscaler (kubernetes/autoscaler, processors/status and clusterstate/api) tells a pod by
 * the Event TriggeredScaleUp that it has enlarged a group for it, by NotTriggerScaleUp that it has not,
 * and in a ConfigMap whether any group of its is growing. Karpenter (kubernetes-sigs/karpenter,
 * provisioning/scheduling/events.go, NodeClaim v1) tells it by Nominated which NodeClaim is to be for it,
 * by FailedScheduling that there is none, and a NodeClaim has the condition Initialized once its node and
 * the resources of that are there.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* After so long (cluster-autoscaler's --max-node-provision-time by default, and Karpenter's own limit) a
 * node that was promised does not come any more. */
#define SCALE_UP_WORD_NS (INT64_C(15) * 60 * 1000000000)
/* So old a report of cluster-autoscaler, which writes one every ten seconds, is nobody's any more. */
#define SCALE_UP_REPORT_NS (INT64_C(5) * 60 * 1000000000)

/* An Event about the pod. What it lacks is NULL. */
struct scale_up_word {
    const char *reporter, *reason, *note;
    int64_t at_ns; /* Unix time, of the last occurrence */
};

struct scale_up_facts {
    bool of_pod;                       /* else of any */
    const struct scale_up_word *words; /* of that pod */
    size_t n_words;
    int64_t reported_ns; /* Unix time of cluster-autoscaler's last report; 0: there is none */
    bool groups_grow;    /* what that says */
    bool claims_known;   /* there are NodeClaims in this cluster */
    int64_t n_claims;    /* of these, whose nodes are still to come */
    int64_t now_ns;
};

/* Who brings nodes, a constant; NULL: nobody that is known. Times in the future are now. */
const char *scale_up_find(const struct scale_up_facts *facts);
