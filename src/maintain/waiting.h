/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Moves for pods that wait: of those that have existed for so long without a node, in the order in which they
 * came, the first for which moves make room (maintain/relocation.h). Who fits as things are is kube-scheduler's
 * affair, and who comes with a group is passed over, since it alone would be of no use. One thread.
 */
#include "maintain/relocation.h"

#define WAITING_TRIES_MAX 16 /* pods for which moves are looked for, each time */

struct waiting_query {
    struct relocation_query relocation; /* whose goal is left to be set */
    int64_t waited_ms;
    int64_t now_s;      /* Unix time */
    GHashTable *passed; /* UIDs of pods that are passed over, as keys; NULL: none */
};

/* The plan for that pod, or one without steps: it is reached if nobody waits. NULL, with an error: the cluster
 * cannot be read. */
struct relocation *waiting_find(const struct waiting_query *query, GError **error);

/* That the pod is there no longer. */
struct relocation *waiting_gone(const char *ns, const char *name);
