/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where the cluster is, as the options say: an API server with a reflector per feed, or a
 * snapshot. One thread, but for the cluster itself.
 */
#include "store/cluster.h"
#include "store/store.h"
#include "options/config.h"
#include "http/routes.h"
#include "kube/api_client.h"
#include "verbs/leadership.h"

struct backend;

/* What a store is told by the options. Borrows the configuration's strings. */
struct store_options backend_store_options(const struct config *config);

/* Reads what is needed to know the cluster, but does not call it yet. Borrows configuration and
 * store. */
struct backend *backend_open(const struct config *config, struct store *store, GError **error);

/* Valid until backend_free. */
struct cluster *backend_cluster(struct backend *backend);

/* How pods come and go in a snapshot; NULL for an API server. */
const struct snapshot_hooks *backend_hooks(const struct backend *backend);

/* What people call the cluster: an address, a file. */
const char *backend_title(const struct backend *backend);

/* Reads all of the cluster into a store once, instead of feeding it. */
bool backend_read(struct backend *backend, struct store *store, GError **error);

/* Begins to feed the store. */
bool backend_start(struct backend *backend, GError **error);

/* Begins to answer Kueue, if the options say so and there is an API server, until backend_stop. Borrows the
 * leadership. */
bool backend_answer_kueue(struct backend *backend, struct leadership *leadership, GError **error);
/* Begins to ask how busy pods are, if the options name a source (--usage), until backend_stop. */
bool backend_ask_usage(struct backend *backend, GError **error);
/* What evicts pods has in common: client and cluster are for it alone. Borrowed. */
struct backend_evicting {
    struct api_client *client;
    struct cluster *cluster;
    struct permits *permits;
    struct leadership *leadership;
};

/* The same for --calendar: switches nodes while this replica serves. */
bool backend_switch_nodes(struct backend *backend, const struct backend_evicting *with,
                          GError **error);

/* The same for --plans: carries out the plans that ConfigMaps order. */
bool backend_carry_out_plans(struct backend *backend, const struct backend_evicting *with,
                             GError **error);

/* The same: ends groups that stay half, if that is wanted. */
bool backend_end_half_groups(struct backend *backend, const struct backend_evicting *with,
                             GError **error);
/* Ends these three. */
void backend_stop_evicting(struct backend *backend);

/* For a backend that has an API server and was started: asks for a list of the pods that begins
 * after this call, and whether it has ended. Any thread. */
uint64_t backend_relist_pods(struct backend *backend);
bool backend_has_listed_pods(const struct backend *backend, uint64_t wanted);

/* Where Events about pods go, or NULL. */
struct events *backend_events(const struct backend *backend);

/* Another client of the same API server, for calls that must not wait for others. */
struct api_client *backend_new_client(const struct backend *backend, GError **error);

/* Ends feeding and leaves behind what the options ask for (--snapshot-out). */
bool backend_stop(struct backend *backend, GError **error);

/* NULL is fine. No call of the cluster may be under way. */
void backend_free(struct backend *backend);
