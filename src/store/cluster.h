/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The world as the verbs see it: the API server, a saved snapshot, or a test's fake. A call may
 * block until its deadline; no lock is held across it. Any number of threads may call at once.
 */
#include "store/pod_event.h"
#include "store/store.h"
#include "wire/kubernetes.h"

struct cluster;

struct cluster_ops {
    const char *name; /* "kubernetes", "snapshot": logs and /version */

    /* Sends one Binding. deadline_ms is of g_get_monotonic_time()/1000. */
    enum outcome (*bind)(struct cluster *cluster, const struct binding *binding,
                         int64_t deadline_ms, GError **error);

    /* Reads one pod, consistently (not from a cache). The view borrows from `arena`. */
    enum outcome (*get_pod)(struct cluster *cluster, struct json_arena *arena, const char *ns,
                            const char *name, int64_t deadline_ms, struct pod_view *ret_pod,
                            GError **error);

    /* Reads the pods of one node that have not ended, likewise. NULL: nobody can say. */
    enum outcome (*list_pods_on)(struct cluster *cluster, struct json_arena *arena,
                                 const char *node, int64_t deadline_ms, struct pod_view **ret_pods,
                                 size_t *ret_n, GError **error);

    /* Reads what a feed would be fed with now, consistently, into a store of the caller's: a whole
     * list, begun and ended. May take as long as the cluster is large. */
    enum outcome (*list)(struct cluster *cluster, enum feed feed, struct store *store,
                         GError **error);

    /* Sets one annotation of the pod with this UID; NULL: pods cannot be changed. */
    enum outcome (*annotate_pod)(struct cluster *cluster, const struct pod_annotation *annotation,
                                 int64_t deadline_ms, GError **error);

    /* Reads one Node, consistently, and sets one of its annotations if it has not changed since:
     * else OUTCOME_CONFLICT. Both NULL: Nodes cannot be changed. */
    enum outcome (*get_node)(struct cluster *cluster, struct json_arena *arena, const char *name,
                             int64_t deadline_ms, struct node_view *ret_node, GError **error);
    enum outcome (*annotate_node)(struct cluster *cluster,
                                  const struct node_annotation *annotation, int64_t deadline_ms,
                                  GError **error);

    /* Notes an Event about a pod, to be written when there is time; NULL: there are no Events.
     * Never blocks, and drops what is too much. */
    void (*post_event)(struct cluster *cluster, const struct pod_event *event);
};

/* Implementations embed this as their first member. */
struct cluster {
    const struct cluster_ops *ops;
};
