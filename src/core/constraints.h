/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which nodes kube-scheduler leaves out for a pod before it asks about cards: cordoned ones, those
 * with a taint that the pod does not tolerate, those that it does not select. What depends on other
 * pods, on volumes or on ports is not modelled; that a pod has such is known (enum overlooked).
 *
 * Source: k8s.io/component-helpers scheduling/corev1 and its nodeaffinity, k8s.io/api core/v1
 * (Toleration.ToleratesTaint), kube-scheduler's plugins NodeUnschedulable, NodeName,
 * TaintToleration, NodeAffinity, in that order.
 */
#include "core/node_traits.h"

#include <gpuledger/ledger.h>

enum match_operator {
    MATCH_IN,
    MATCH_NOT_IN,
    MATCH_EXISTS,
    MATCH_DOES_NOT_EXIST,
    MATCH_GT, /* both sides are whole numbers */
    MATCH_LT,
    MATCH_N
};

/* A row of matchExpressions, or of matchFields, which knows the node's name alone. */
struct match {
    const char *key;
    enum match_operator operator;
    bool field; /* the key is "metadata.name" */
    const char *const *values;
    size_t n_values;
};

/* All of them must hold. Nothing matches where there are none. */
struct match_term {
    const struct match *matches;
    size_t n;
};

enum toleration_operator {
    TOLERATION_EQUAL,
    TOLERATION_EXISTS,
    TOLERATION_LT, /* the taint's value is below its own; both are whole numbers */
    TOLERATION_GT,
    TOLERATION_N
};

struct toleration {
    const char *key;    /* NULL: of any taint */
    const char *value;  /* NULL is "" */
    const char *effect; /* NULL: any */
    enum toleration_operator operator;
};

/* What kube-scheduler looks at and nobody here does. */
enum overlooked {
    OVERLOOKED_POD_AFFINITY,
    OVERLOOKED_POD_ANTI_AFFINITY,
    OVERLOOKED_TOPOLOGY_SPREAD,
    OVERLOOKED_VOLUMES,
    OVERLOOKED_HOST_PORTS,
    OVERLOOKED_RESOURCE_CLAIMS,
    OVERLOOKED_SCHEDULING_GATES,
    OVERLOOKED_PRIORITY_CLASS,
    OVERLOOKED_N
};

/* Of one pod. Borrowed from whoever read it. */
struct constraints {
    const char *node_name; /* spec.nodeName of a pod that is not there yet; NULL or "": any */
    struct string_pairs selector;   /* all must hold */
    bool has_affinity;              /* one of the terms must hold */
    const struct match_term *terms;
    size_t n_terms;
    const struct toleration *tolerations;
    size_t n_tolerations;
    bool never_preempts; /* preemptionPolicy */
    unsigned overlooked; /* bits, 1 << enum overlooked */
};

/* What kube-scheduler leaves a node out for, the first that it would look at. */
enum barrier {
    BARRIER_NONE,
    BARRIER_CORDONED,
    BARRIER_NODE_NAME,
    BARRIER_TAINT,
    BARRIER_SELECTOR,
    BARRIER_AFFINITY,
    BARRIER_PODS, /* these three are sums: feasibility_barrier (store/feasibility.h) knows them */
    BARRIER_CPU,
    BARRIER_MEMORY,
    BARRIER_N
};

/* Stable, for scripts: "taint"; NULL for BARRIER_NONE. The field of a pod: "podAffinity". */
const char *barrier_code(enum barrier barrier);
const char *overlooked_name(enum overlooked overlooked);

/* Whether they leave out the same nodes, as far as their texts tell. */
bool constraints_equal(const struct constraints *a, const struct constraints *b);

/* A copy that borrows nothing, in one block; free with g_free. NULL gives NULL. */
struct constraints *constraints_dup(const struct constraints *constraints);

/* NULL constraints: only whether the node is cordoned is looked at. */
enum barrier constraints_check(const struct constraints *constraints, const struct node *node);

/* How much has to be compared with one node: values, and keys, which take longer. NULL: nothing. */
int64_t constraints_size(const struct constraints *constraints);

/* The first of the node's taints that is not tolerated; NULL: none. */
const struct taint_view *constraints_taint(const struct constraints *constraints,
                                           const struct node *node);

/* A sentence that names label or taint and its value. Free with g_free; NULL for BARRIER_NONE. */
char *constraints_tell(const struct constraints *constraints, const struct node *node,
                       enum barrier barrier);
/* "dedicated=ml:NoSchedule". Free with g_free. */
char *taint_tell(const struct taint_view *taint);
/* "podAffinity, volumes"; NULL: nothing is overlooked. Free with g_free. */
char *overlooked_tell(unsigned overlooked);
