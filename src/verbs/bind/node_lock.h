/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The annotation by which some plugins are told whose containers they serve next. It is taken before
 * the Binding, because kubelet may ask the plugin as soon as the pod is bound, and the plugin takes
 * it away when the pod is served. Whose holder is gone, ended or served, or was never bound in all
 * the time that a Binding can take, has lost it: who comes next takes it over.
 *
 * Every change is bound to the version of the Node that was looked at, so that two who want the lock
 * cannot both get it.
 */
#include "store/cluster.h"

#define NODE_LOCK_HELD "another pod of the node still waits for its GPU; try again"
/* The API server ends requests after 60 s; what it has not bound by then it never will. */
#define NODE_LOCK_STALE_S 90
/* HAMi's own locks end after so long: whose time is as far ahead was set by a clock that is wrong, and would
 * seem fresh until ours is there. */
#define NODE_LOCK_AHEAD_S 300

struct node_lock {
    struct cluster *cluster;
    struct store *store; /* its changes wake who waits */
    const struct dialect *dialect;
    const char *node;
    const char *ns; /* of the pod */
    const char *name;
};

/* Waits until the lock is the pod's; OUTCOME_OK also where there is none to take. OUTCOME_CONFLICT:
 * another pod had it until the end; OUTCOME_UNKNOWN: the API server did not answer until then. */
enum outcome node_lock_take(const struct node_lock *lock, int64_t until_ms, GError **error);

/* Lets go of the lock of a pod that will certainly not be bound. Does what it can until then. */
void node_lock_release(const struct node_lock *lock, int64_t until_ms);
