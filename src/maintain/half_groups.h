/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Ends groups of pods that stay half (gang/gangs.h): the pods of one that are bound are evicted, so that
 * whoever made them makes them again and the group comes whole. Only pods that this program has bound
 * with their group, as their Bindings say, and only if all of the group's bound pods are such; all are
 * tried first, and a budget that has nothing to give is waited for. So many within any minute, by the replica that
 * serves; who begins to serve waits for one first, since nobody knows what others did in it. A thread of its own, which calls the API server without any lock.
 */
#include "evict/permits.h"
#include "kube/api_client.h"
#include "store/store.h"
#include "verbs/leadership.h"

#define HALF_GROUPS_MINUTE_MAX 30 /* evictions, by the permits */

struct half_groups;

struct half_groups_options {
    struct api_client *client; /* these are borrowed */
    struct store *store;
    struct leadership *leadership; /* NULL: the only replica */
    struct permits *permits;       /* begins each term with a minute in which all were evicted */
};

/* NULL with an error: no thread can be had. */
struct half_groups *half_groups_start(const struct half_groups_options *options, GError **error);
void half_groups_free(struct half_groups *half); /* NULL is ignored */
