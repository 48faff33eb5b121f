/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * An extender on a fake cluster, and the few sentences that its tests are written in. Texts that
 * are returned are the caller's (g_free).
 */
#include "verbs/extender.h"
#include "fake_cluster.h"

/* A bind that may take so long gives up after its first try. */
#define WORLD_ONE_TRY_MS 230

struct world {
    struct store *store;
    struct fake_cluster *cluster;
    struct extender extender;
};

/* Nothing listed yet. Binds may take 3 s, and pods 60 s to be matched. */
void world_init(struct world *world);
void world_release(struct world *world);
/* Lists every feed. */
void world_sync(struct world *world);
/* Delivers every queued event. */
void world_catch_up(struct world *world);
/* Puts and lists "duo" with two cards of 10 units, "mono" with one of 10, and "plain" with none. */
void world_populate(struct world *world);
/* A pod that the watch shows at once: running where another bind put it, or pending. */
void world_add_bound(struct world *world, const char *pod, const char *node, int64_t mem,
                     const char *card);
void world_add_pending(struct world *world, const char *pod, int64_t mem);

/* The body of a filter call for a pod as it stands in the cluster; `nodes` is "n1,n2". */
char *world_filter_body(struct world *world, const char *pod, const char *nodes);
char *world_filter(struct world *world, const char *pod, const char *nodes);
/* The marks of all nodes that are named as "n1=10 n2=0", or the error. */
char *world_prioritize(struct world *world, enum prioritize_pods pods, const char *pod,
                       const char *nodes);
char *world_bind_body(const char *pod, const char *uid, const char *node);
/* The answer's Error: "" for success. */
char *world_bind_uid(struct world *world, const char *pod, const char *uid, const char *node);
/* The same, with "uid-" and the name for the UID. */
char *world_bind(struct world *world, const char *pod, const char *node);
/* The same, and fails the test unless the Error is exactly this. What is to succeed may take as long as by
 * default, whatever a test has set for those that are to give up. */
void world_expect_bind(struct world *world, const char *pod, const char *node, const char *error);

/* view_nodes, all states but "assigned" written alike. */
char *world_nodes(struct world *world);
/* The same of a copy of the store, from which everything is then taken away. */
char *world_copied(struct world *world);
/* The same of a new store that has listed the cluster as it is now. */
char *world_replay(struct world *world);

/* Units that pods hold of a card; -1: no such card. */
int64_t world_used(struct world *world, const char *node, int32_t card);
/* Units that pods hold of no known card. */
int64_t world_unplaced(struct world *world, const char *node);
/* The state of a pod's allocation, or -1. */
int world_state(struct world *world, const char *uid);
/* The card of a pod's first share; -2: no allocation. */
int world_card(struct world *world, const char *uid);
/* Makes an allocation look as old as that. */
void world_age(struct world *world, const char *uid, int64_t ms);
/* Once all is quiet: delivers what is queued and settles what is open, whatever it takes. */
void world_settle_down(struct world *world);
/* Fails the test if the ledger's sums do not add up. */
void world_verify(struct world *world);
