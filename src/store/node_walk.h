/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Going through the nodes for a view, without holding the store's lock for the whole cluster: it is
 * let go of after every few nodes. What is seen of different nodes may be of different moments, and
 * of a node that comes or goes meanwhile nothing may be seen. Any thread.
 */
#include "store/store.h"

#define NODE_WALK_STEP 16 /* nodes for which the lock is held */

/* Under the lock: reads the node, and does no I/O. False: it was the last that is wanted. */
typedef bool (*node_visit)(const struct node *node, void *data);

/* In order of name, from the first that comes after `after` on (NULL or "": from the first). */
void node_walk(struct store *store, const char *after, node_visit visit, void *data);
