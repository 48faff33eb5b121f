/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pods of a simulation: an API server that never fails, in memory, with node sides that take a
 * pod at once, or when they are told to. Every change is told to the store, as a watch would. One thread at a time.
 */
#include "store/cluster.h"

/* Borrows the store. */
struct cluster *memory_cluster_new(struct store *store);
void memory_cluster_free(struct cluster *cluster); /* NULL is ignored */

/* From now on node sides take pods when memory_cluster_serve says so. */
void memory_cluster_set_paced(struct cluster *cluster);
/* The node side takes the pod; one that has gone is passed over. */
bool memory_cluster_serve(struct cluster *cluster, const char *ns, const char *name, GError **error);

/* Adds a Pod of a JSON text, by its namespace and name; it may have a node already. */
bool memory_cluster_add(struct cluster *cluster, char *take_text, GError **error);

/* Forgets a pod that is there. */
void memory_cluster_remove(struct cluster *cluster, const char *ns, const char *name);

/* The node of a pod that is there, or NULL. Borrowed. */
const char *memory_cluster_node(struct cluster *cluster, const char *ns, const char *name);

/* A pod as it was added, and what its Binding and its node side have added since. */
struct memory_pod {
    char *uid, *ns, *name;
    char *text;
    char *node; /* NULL: it waits */
    bool served; /* by its node side */
    struct annotations words;
};

/* All of them by namespace and name: const struct memory_pod *, borrowed. */
GPtrArray *memory_cluster_pods(struct cluster *cluster);

/* The pod with its node and all annotations, as JSON. Free with g_free. */
char *memory_pod_format(const struct memory_pod *pod);
