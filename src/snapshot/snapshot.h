/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * A cluster in memory, from a file: the program without an API server. Binding keeps the API
 * server's rules (404, 409, annotations merged), and the node side is played at once: the pod gets
 * the annotations that its dialect's plugin would write, and runs.
 *
 * Nodes, pods and the ConfigMaps that name unhealthy cards are kept, as JSON; everything else in
 * the file is dropped. What changes is handed to the store in order, as a watch would.
 * Threads: any. The own lock is never held while the store is called.
 */
#include "store/cluster.h"
#include "store/store.h"

/* Reads the file (snapshot/snapshot_file.h) and fills the store, which is then in sync. Objects that
 * cannot be understood are errors that name them. Borrows the store. */
struct cluster *snapshot_cluster_new(const char *file, struct store *store, GError **error);
void snapshot_cluster_free(struct cluster *cluster);

/* Adds the Pod of a JSON text. A namespace ("default"), a UID and a phase (Pending) are filled in
 * where they lack. Appends the pod to `reply`. GPULEDGER_ERROR_INVALID, or _CONFLICT when the name
 * or the UID is taken. */
bool snapshot_add_pod(struct cluster *cluster, const char *body, size_t length, GString *reply,
                      GError **error);

/* GPULEDGER_ERROR_NOT_FOUND if there is none. */
bool snapshot_delete_pod(struct cluster *cluster, const char *ns, const char *name, GError **error);

/* Writes all of it in a form that snapshot_cluster_new reads. */
bool snapshot_save(struct cluster *cluster, const char *file, GError **error);
