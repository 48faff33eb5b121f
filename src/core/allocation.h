/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What a pod holds, for those who put it on nodes. */
#include <gpuledger/ledger.h>

/* Chooses, of all that was read of the pod, what counts on the node as it is now. An allocation that
 * is charged is credited before, or everything is counted anew after. */
void allocation_choose(struct allocation *allocation, const struct node *node);
