/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Pods placed on a copy of the store (store_copy), as if kube-scheduler, this program and the node
 * side had all done their part. Under the copy's lock.
 */
#include "store/feasibility.h"

/* Whether there is a Node of that name. Takes the copy's lock itself. */
bool trial_knows(struct store *copy, const char *node);

/* Adds a node of that kind under that name, without what the Node says of its own state: cordons, health,
 * locks, heartbeats, use, and taints that come and go. Takes the copy's lock itself. */
void trial_add_node(struct store *copy, const struct node_view *kind, const char *name);

struct trial_pod {
    const struct pod_view *view;
    const struct request *request;
    const struct moment *moment;
    GHashTable *only; /* names of the nodes that are offered; NULL: all */
    bool *
        cut; /* set where a search was cut short, so that a node may take the pod all the same; or NULL */
};

/* Where the pod goes: the best by the policy of those nodes that kube-scheduler offers and that take
 * it. NULL: nowhere. */
const struct node *trial_choose(struct store *copy, const struct trial_pod *pod,
                               struct placement *ret_placement);

/* Both: the node that it is on now; NULL: it fits nowhere. */
const struct node *trial_settle(struct store *copy, const struct trial_pod *pod, const char *uid);

/* Puts the pod there under this UID, as matched by the node side. False: it does not fit after all. */
bool trial_put(struct store *copy, const struct trial_pod *pod, const char *uid,
              const struct node *node, const struct placement *placement);
