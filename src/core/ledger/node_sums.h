/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What is counted on a node, for node.c, which says what there is to count on. */
#include <gpuledger/ledger.h>

/* After every change: finds the emptiest card, and makes the node another version. */
void node_summarize(struct node *node);

/* Counts the node's allocations anew, and CPU-only pods that have so much. */
void node_charge_all(struct node *node, struct host cpu_pods);
