/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What no packing can pass: an upper bound for the value of the pods that find room on given nodes,
 * whoever places them, in whatever order, refusing whom he likes.
 *
 * It is the linear relaxation of filling nodes: pods and nodes may be taken in fractions, but what one
 * node holds is a filling in which whole pods share cards and CPU. Sizes and CPU are rounded down to
 * steps, and the nodes' memory, slots and all other resources are left out; each of these only raises
 * the bound. Pure; any thread.
 */
#include "policy/room.h"

#define BOUND_PODS_MAX 1024 /* different ones */
#define BOUND_NODES_MAX 1024

/* Pods that are alike. */
struct bound_pod {
    double pods;   /* how many came; may be a mean */
    double value;  /* what one of them counts, in cards; 0 or more */
    int32_t cards; /* 1: a part of one; more: so many whole ones of a node */
    int64_t cpu;   /* thousandths of a core */
    const struct room *rooms; /* by kind of card: what it takes of one; nothing: none will do */
};

/* Nodes that are alike, before the pods come. Their cards are of one kind. */
struct bound_node {
    double nodes;
    int32_t kind;
    int32_t whole;            /* cards that are free */
    uint32_t n_parts;         /* cards that are not, but have room */
    const struct room *parts;
    int64_t cpu;              /* free, in thousandths of a core; INT64_MAX: not known */
};

struct bound_problem {
    const struct bound_pod *pods;
    size_t n_pods;
    const struct bound_node *nodes;
    size_t n_nodes;
    int32_t n_kinds;
};

/* In cards. At most BOUND_PODS_MAX pods and BOUND_NODES_MAX nodes. */
double bound_of(const struct bound_problem *problem);
