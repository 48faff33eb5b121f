/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What kubelet writes into the status of a pod that it rejects. Any thread. */
#include "wire/kubernetes.h"

enum rejection_kind {
    REJECTION_ADMISSION,
    REJECTION_TOPOLOGY,
    REJECTION_RESOURCE,
    REJECTION_N
};
extern const char *const rejection_names[REJECTION_N]; /* of a counter */

/* Why kubelet has rejected a pod. */
struct rejection {
    enum rejection_kind kind;
    bool refused; /* the plugin answered, and said no: it may be about the card */
};

/* Whether kubelet has, for a reason of the GPU side; by what it writes into the pod's status, and nothing
 * else. CPU, memory, ports, the number of pods, affinity and other plugins' devices are no reason to keep
 * others from the node. */
bool rejection_read(const struct pod_view *pod, struct rejection *ret_rejection);
