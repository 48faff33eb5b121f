/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The API server as the verbs see it (store/cluster.h).
 */
#include "kube/api_client.h"
#include "kube/events.h"

/* Borrows the client. */
struct cluster *api_cluster_new(struct api_client *client);
/* No call may be under way; NULL is fine. */
void api_cluster_free(struct cluster *cluster);

/* The server's gitVersion, which the first bind asks for otherwise: some versions do not compare a
 * Binding's UID with the pod's, so that each bind has to look at the pod first. */
void api_cluster_set_version(struct cluster *cluster, const char *git_version);

/* Where Events about pods go (borrowed); NULL, as at first: nowhere. To be called before others call
 * the cluster. */
void api_cluster_set_events(struct cluster *cluster, struct events *events);

/* Lists under way and to come end at once. Any thread. */
void api_cluster_stop(struct cluster *cluster);
