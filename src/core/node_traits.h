/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What kube-scheduler looks at of a node before it asks about cards: labels, taints, and how much
 * there is of what it counts in sums. Immutable, shared by reference; any thread may hold one.
 */
#include <gpuledger/pod_facts.h>

/* Beyond these they are left out. */
#define NODE_TRAITS_LABELS_MAX 1024
#define NODE_TRAITS_TAINTS_MAX 256
#define NODE_TRAITS_AMOUNTS_MAX 64

struct node_traits {
    gint n_references; /* atomic */
    uint32_t n_taints;
    uint32_t n_amounts;
    struct string_pairs labels;             /* these three live in the same block */
    const struct taint_view *taints;        /* those that keep pods away: NoSchedule, NoExecute */
    const struct pod_facts_amount *amounts; /* allocatable; extended resources alone */
};

/* One reference, the caller's. */
struct node_traits *node_traits_new(const struct node_view *view);
struct node_traits *node_traits_ref(struct node_traits *traits); /* NULL gives NULL */
void node_traits_unref(struct node_traits *traits);              /* NULL is ignored */
typedef struct node_traits node_traits;                          /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(node_traits, node_traits_unref)

/* Thousandths of the resource that pods may have altogether; 0: the node does not offer it. */
int64_t node_traits_amount(const struct node_traits *traits, const char *resource);
