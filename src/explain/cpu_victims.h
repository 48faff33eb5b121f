/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods without a GPU that preemption may end. A copy of the store has only the sum of what they take of their node,
 * so they are read from the cluster, of a few nodes.
 */
#include "policy/victims/victims.h"
#include "store/cluster.h"

#define CPU_VICTIMS_NODES_MAX 16 /* nodes that are read for one preview */

struct cpu_victims {
    struct cluster *cluster; /* NULL: none can be read */
    struct store
        *copy; /* the caller's own, under its lock, which is let go while the cluster answers */
    int64_t deadline_ms; /* of all reads together; 0: none has begun */
    unsigned reads;
};

/* The node's pods that hold no GPU, as allocations without a dialect, node or shares (struct allocation *); NULL: they
 * are not known. Free with g_ptr_array_unref. */
GPtrArray *cpu_victims_read(struct cpu_victims *cpu_victims, const struct node *node);

/* Whether it is one of those. */
bool cpu_victims_made(const struct allocation *allocation);

/* They end as well. */
void cpu_victims_add_cost(const GPtrArray *victims, struct victims_cost *cost);

/* Why preemption ends no pod, where those of so many nodes were not read; with the name of one. Free with g_free. */
char *cpu_victims_say_unread(const char *node, guint n);
