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

/* What kube-scheduler counts for a pod: what all containers request together, or more if an init
 * container needs more before they begin, and the overhead. What cannot be read counts as nothing,
 * as the API server lets nothing else through. */
struct host host_of_pod(const struct pod_view *pod);

/* What a node has for pods; 0: not known. */
struct host host_of_node(const struct node_view *node);

#pragma GCC visibility pop
