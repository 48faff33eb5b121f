/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Annotations by which a pod asks other programs to leave it where it is:
 *
 *   descheduler.alpha.kubernetes.io/prefer-no-eviction, …/eviction-in-progress    kubernetes-sigs/descheduler
 *   scheduling.koordinator.sh/refuse-to-migrate, …/eviction-cost: 2147483647      Koordinator
 *   cluster-autoscaler.kubernetes.io/safe-to-evict: "false"                       cluster-autoscaler
 *   karpenter.sh/do-not-disrupt: "true"                                           Karpenter
 */
#include <gpuledger/dialect.h>

/* The first of these keys that holds the pod; NULL: none does. Any thread. */
const char *opt_out_of(const struct pod_view *pod);
