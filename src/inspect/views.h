/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The ledger for people and scripts. Each view copies what it needs under the lock, a few nodes at a
 * time, and formats after it: a node's cards and pods are of one moment, two nodes may not be. Any
 * thread.
 */
#include "store/store.h"
#include "json/json.h"

/* What the states of an allocation are called. */
#define VIEW_STATES_N ALLOCATION_STATES
extern const char *const view_states[VIEW_STATES_N];

/* The names of nodes that are left out, whole or in part; a set, to be freed with g_hash_table_unref. */
GHashTable *view_left_out(struct store *store);

/* GET /gpushare-scheduler/inspect[/node]: the view of the Aliyun command-line tool, key for key.
 * `node` NULL means all. False: no such node (an answer with "error" is written all the same). */
bool view_inspect(struct store *store, const char *node, GString *reply);

/* GET /scheduler/status: what is free on each card, for each resource that some node offers, in
 * the shape of elastic-gpu-scheduler. */
void view_status(struct store *store, GString *reply);

/* GET /api/v1/nodes[/name] as JSON. */
bool view_nodes(struct store *store, const char *node, GString *reply);

/* The same as a table for terminals. */
bool view_nodes_table(struct store *store, const char *node, GString *reply);

/* GET /api/v1/pods/{ns}/{name}: false if the ledger knows no such pod. */
bool view_pod(struct store *store, const char *ns, const char *name, GString *reply);

/* GET /api/v1/wall: the cards that come after the node `after` (NULL: from the first on), as the page
 * draws them, of at most so many nodes. */
#define VIEW_WALL_NODES 256
void view_wall(struct store *store, const char *after, GString *reply);

/* GET /api/v1/waiting: the pods that ask for a GPU and have no node, in order of arrival. */
#define VIEW_WAITING_PODS 200
/* `search` NULL: all; else those in whose "NAMESPACE/NAME" it is, in whatever case. */
void view_waiting(struct store *store, const char *search, GString *reply);

/* GET /api/v1/quotas: the limits of namespaces, and what counts towards them. */
#define VIEW_QUOTAS 200
void view_quotas(struct store *store, GString *reply);
/* The elastic ones as gauges, VIEW_QUOTAS keys of namespaces at most. */
void view_quotas_metrics(struct store *store, GString *reply);
/* Groups of pods by state. */
void view_groups_metrics(struct store *store, GString *reply);

/* GET /api/v1/usage?by=: the cluster's sums, and a row for each of these, the largest first. Of more pods
 * that wait than VIEW_USAGE_WAITING only the number is told. */
enum usage_by { USAGE_NAMESPACES, USAGE_NODES, USAGE_MODELS };
extern const char *const usage_names[]; /* NULL ends them */
#define VIEW_USAGE_ROWS 1000
#define VIEW_USAGE_WAITING 1000
void view_usage(struct store *store, enum usage_by by, GString *reply);

/* GET /api/v1/decisions: what the verbs decided lately (base/decisions.h). */
void view_decisions(GString *reply);

/* Gauges of the ledger in the Prometheus text format. Of more than `cards_max` cards only sums are told,
 * not one by one. */
void view_metrics(struct store *store, int64_t cards_max, GString *reply);

/* One series for each container and card: what it was granted. Pods whose card is not known, or
 * that have devices by count, have none. */
void view_pod_metrics(struct store *store, GString *reply);
