/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What pods take of a node beside its GPUs. kube-scheduler sees to it that it suffices; it is
 * counted here because a free card is of no use where no CPU is left.
 */
#include <gpuledger/names.h>
#include <gpuledger/object.h>

#pragma GCC visibility push(default)

/* At most this of each, so that sums of any number of them fit. */
#define HOST_AMOUNT_MAX (INT64_C(1) << 44)

struct host {
    int64_t cpu;    /* thousandths of a core */
    int64_t memory; /* bytes */
    int64_t pods;   /* how many: a pod is one */
};

bool host_equal(const struct host *a, const struct host *b);

/* What kube-scheduler counts of a resource for a pod, in thousandths. All readers of amounts ask this.
 *
 * The containers request it together, or more if an init container needs more before they begin. What is
 * requested of the pod as a whole counts instead of that; the overhead is added. While a pod is resized in
 * place, a container or sidecar that kubelet reports on holds the largest of its request, what it is allocated
 * and what it has; the request does not count if the resize is infeasible. The same holds of the pod as a
 * whole; if the request does not count and nothing of the resource is reported, the containers count. An amount that cannot be read counts as nothing, as the API server lets none through, and sets
 * `ret_unreadable`, unless it is NULL.
 *
 * Source: kubernetes/kubernetes 1.35.0, staging/src/k8s.io/component-helpers/resource/helpers.go, PodRequests
 * and determineContainerReqs. */
int64_t pod_view_holds(const struct pod_view *pod, const char *resource, bool *ret_unreadable);

/* The same of CPU and memory. */
struct host host_of_pod(const struct pod_view *pod);

/* What a node has for pods; 0: not known. */
struct host host_of_node(const struct node_view *node);

#pragma GCC visibility pop
