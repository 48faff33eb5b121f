/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Some node sides count the cards of a node as NVML does, others by their minor numbers, which need not be the
 * same. Where pods of both kinds are to share a node, gpuledger.io/card-order says how the two map: the minor
 * numbers in NVML's order ("1,0"). Then the ledger's numbers are NVML's.
 *
 * Sources, of NVML's index: AliyunContainerService/gpushare-device-plugin@45fb8b8:pkg/gpu/nvidia/allocate.go:117,
 * volcano-sh/devices@95b591b6:pkg/plugin/nvidia/server.go:406; of the minor number:
 * elastic-ai/elastic-gpu-agent@2609107:pkg/operator/gpushare.go:32,
 * koordinator-sh/koordinator@a7a1b76b:pkg/koordlet/metricsadvisor/devices/gpu.
 */
#include <gpuledger/dialect.h>

/* Whether a dialect of the node's calls cards by their minor numbers. */
bool card_order_matters(const struct topology *topology);
/* What the annotation says, whichever plugins are there just now. A warning as those of dialects. */
void card_order_apply(const struct node_view *view, struct topology *topology, char **ret_warning);

/* The minor number of the ledger's card. */
int32_t card_order_minor(const struct node *node, int32_t index);

/* A pod on the node whose card is known by the other kind of number than the dialect's, where nothing says how they
 * map; NULL: there is none. */
const struct allocation *card_order_stranger(const struct node *node,
                                             const struct dialect *dialect);
