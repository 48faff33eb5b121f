/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* What the target "auto" of a calendar's window means for a node now. Takes the store's lock, a few nodes
 * at a time. */
#include "store/store.h"
#include "switch/machine.h"

/* Of the calendar's layouts those are compared that the node's cards can have. False, with an error: it
 * cannot be told. The value is the caller's. */
bool layout_target_find(struct store *store, const struct calendar *calendar,
                        const struct node_view *node, struct switch_advice *ret_advice,
                        GError **error);
