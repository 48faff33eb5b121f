/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ends groups of pods that stay half (queue/gangs/gangs.h): the pods of one that are bound are evicted, so that
 * whoever made them makes them again and the group comes whole. Only pods that this program has bound
 * with their group, as their Bindings say, and only if all of the group's bound pods are such; all are
 * tried first, and a budget that has nothing to give is waited for. So many a minute, by the replica that
 * serves. A thread of its own, which calls the API server without any lock.
 */
#include "kube/api_client.h"
#include "store/store.h"
#include "verbs/leadership.h"

#define HALF_GROUPS_MINUTE_MAX 30 /* evictions */

struct half_groups;

/* All borrowed; no leadership: this is the only replica. */
struct half_groups *half_groups_start(struct api_client *client, struct store *store,
                                      struct leadership *leadership, GError **error);
void half_groups_free(struct half_groups *half); /* NULL is ignored */
