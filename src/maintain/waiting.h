/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Moves for pods that wait: of those that have existed for so long without a node, the first for which moves
 * make room (maintain/relocation.h). Namespaces take turns, each with its pods in the order in which they came.
 *
 * Only for pods that could come. A pod that fits as things are is kube-scheduler's affair; one of a group would
 * be of no use alone; one that is being deleted never comes. What else keeps a pod from every node (gates, a
 * volume, affinity, another scheduler) keeps kube-scheduler from asking filter about it: where calls are served,
 * moves are looked for only while it asks. One thread.
 */
#include "evict/pauses.h"
#include "maintain/relocation.h"

#define WAITING_TRIES_MAX 16 /* pods for which moves are looked for, each time */
#define WAITING_READS_MAX 64 /* pods that are read, likewise */

struct waiting_query {
    struct relocation_query relocation; /* whose goal is left to be set */
    int64_t waited_ms;
    int64_t now_s;               /* Unix time */
    GHashTable *passed;          /* UIDs of pods that are passed over, as keys; NULL: none */
    const struct pauses *pauses; /* of those whose pods are, likewise */
    bool asking;       /* only pods about which filter was asked in the last six minutes */
    GHashTable *turns; /* by waiting_turns_new, kept from look to look; NULL: all begin anew */
};

/* Which namespace had its turn when. */
GHashTable *waiting_turns_new(void);

/* The plan for that pod, or one without steps: it is reached if nobody waits. NULL, with an error: the cluster
 * cannot be read. */
struct relocation *waiting_find(const struct waiting_query *query, GError **error);

/* The pod for which moves were looked for last, once there are no more of them. */
struct waiting_left {
    const char *ns, *uid, *controller; /* of the latter two NULL: not known, none */
    bool helped;                       /* room was made for it */
    bool in_vain;                      /* and it has not come */
};

/* No moves are looked for the pod itself for so long, nor, unless it was helped, for others of its controller, since a
 * pod for which there was room in vain may be made anew. Whether the controller waits. `passed`: UID -> int64_t *,
 * until when, both its own. */
bool waiting_leave(const struct waiting_left *left, GHashTable *passed, struct pauses *pauses,
                   int64_t for_ms);

/* That the pod is there no longer. */
struct relocation *waiting_gone(const char *ns, const char *name);
