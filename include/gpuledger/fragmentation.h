/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * How much of what is free cannot be used: the measure by which "fgd" places, over the pods with
 * GPUs that are expected. Pure; the caller serialises access to the ledger.
 */
#include <gpuledger/names.h>
#include <gpuledger/demand.h>

#pragma GCC visibility push(default)

/* What a pod that is expected, on average, could not use of the node's free GPU, in thousandths of a
 * card: all of it where the pod would not fit, else what is free on cards too full for it. 0 while
 * nothing is known. */
int64_t fragmentation_of(const struct node *node, const struct demand *demand);

#pragma GCC visibility pop
