/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Who would have to end on a node so that quotas let a pod in there as well: what its quotas lack, and what each
 * pod of the node gives back of that. Made under the store's lock, for a search without it.
 *
 * Only pods count that count where the pod does: a namespace makes room in its quotas by ending its own
 * pods. What others would give back of what is lent is --reclaim's.
 */
#include "quota/quotas.h"

struct quota_relief;

/* The room refuses the node. NULL: it would even if all pods there ended that are less important than the
 * pod. Borrows nothing. */
struct quota_relief *quota_relief_new(const struct quota_room *room, const struct node *node,
                                      int64_t priority);
void quota_relief_free(struct quota_relief *relief); /* NULL is ignored */

/* Whether those have given back enough that are not on the node any more; no relief (NULL): nothing was
 * lacking. */
bool quota_relief_suffices(const struct quota_relief *relief, const struct node *left);
