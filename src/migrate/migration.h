/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What it takes to put gpuledger in another scheduler's place: what was found of it, what stands in the
 * way, the steps and the way back. Looks only. One thread.
 */
#include "migrate/census.h"
#include "store/store.h"

/* Why a pod or node stands in the way: the code of an audit's cause (audit/audit.h), or one of these. */
#define OBSTACLE_REFUSED "refused"
#define OBSTACLE_GROUP "group"
#define OBSTACLE_NODE "node_unread"

struct obstacle {
    const char *cause;     /* a constant */
    const char *ns, *name; /* NULL: it is about the node */
    const char *node;      /* or NULL */
    const char *why, *advice;
};

#define OBSTACLES_MAX 1000

/* What to do, in order. */
struct migration_step {
    char *what;
    char *command; /* lines; NULL: none */
};

struct migration {
    const struct peer *peer;
    guint nodes, cards, pods, waiting; /* that the peer serves; pods with a node, and without */
    guint under_way;                   /* of the former: the node side has yet to take them */
    guint n_obstacles;                 /* also those that are not listed */
    GArray *obstacles;                 /* struct obstacle, OBSTACLES_MAX at most */
    GStringChunk *texts;               /* theirs */
    GPtrArray *steps, *back;           /* struct migration_step * */
};

/* `store` knows the whole cluster, `census` all of its pods; the latter is borrowed. */
struct migration *migration_plan(struct store *store, const struct census *census);
void migration_free(struct migration *migration);
typedef struct migration migration; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(migration, migration_free)

void migration_encode(struct json_writer *writer, const struct migration *migration,
                      const struct census *census);
