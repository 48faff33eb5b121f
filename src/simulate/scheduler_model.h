/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A small model of what kube-scheduler does by itself: nodes must have what a pod requests (the
 * plugin NodeResourcesFit, for CPU, memory, the number of pods, and extended resources), and its
 * own scores (LeastAllocated and BalancedAllocation, CPU and memory, weight 1 each) rank them where
 * nothing else does. Labels, taints and cordons are not its matter: core/constraints.h. Affinity between
 * pods, volumes and whatever else are left out.
 *
 * Source: kube-scheduler v1.36, pkg/scheduler/framework/plugins/noderesources.
 *
 * A node is known by its place in the order in which nodes were added. One thread at a time.
 */
#include <glib.h>
#include <gpuledger/object.h>

struct scheduler_model;

/* What one pod requests. Free with g_array_unref. */
typedef GArray pod_needs;

struct scheduler_model *scheduler_model_new(void);
void scheduler_model_free(struct scheduler_model *model); /* NULL is ignored */
typedef struct scheduler_model scheduler_model;           /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(scheduler_model, scheduler_model_free)

/* Of CPU, memory and pods, a node that does not say how much it has is taken to have enough. */
void scheduler_model_add_node(struct scheduler_model *model, const struct node_view *view);

pod_needs *scheduler_model_needs(struct scheduler_model *model, const struct pod_view *pod);

/* The nodes on which the pod fits, in order; `ret_nodes` has room for all of them. */
size_t scheduler_model_filter(const struct scheduler_model *model, const pod_needs *needs,
                              uint32_t *ret_nodes);

/* Whether it fits on this one. */
bool scheduler_model_fits(const struct scheduler_model *model, uint32_t node,
                          const pod_needs *needs);

void scheduler_model_take(struct scheduler_model *model, uint32_t node, const pod_needs *needs);
void scheduler_model_give(struct scheduler_model *model, uint32_t node, const pod_needs *needs);

/* Its own score of a node on which the pod fits, 0 to 200. */
int32_t scheduler_model_score(const struct scheduler_model *model, uint32_t node,
                              const pod_needs *needs);
