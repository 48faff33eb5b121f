/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Time-slicing keeps nobody's memory apart. With --nvidia-memory-guard pods say how much they want
 * (gpuledger.io/gpu-memory), and a node takes no more of them than have room on one card in the worst
 * case: kubelet picks the replicas, so as many pods as a card has replicas may meet on one, the most
 * demanding ones, and beside them pods of a former configuration of the plugin, whose devices had names
 * that kubelet has forgotten. A sum over the node's cards would promise what kubelet need not keep. Who says
 * nothing counts with its replicas' equal part of the card.
 */
#include <gpuledger/ledger.h>

/* REASON_CARD_TOO_SMALL, REASON_SHARED_MEMORY, or REASON_NONE. */
enum reason nvidia_guard_refuse(const struct node *node, const struct request *request,
                                const struct pool *pool);
