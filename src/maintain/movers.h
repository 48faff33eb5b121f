/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The pods of some nodes that hold a GPU: what their successors will ask for, and whether they may be
 * moved. They stay if nobody makes them again or their controller would do so on the same node, if they
 * are of a group, which would wait for them, if an annotation says so (pod_view_opt_out), or if a
 * PodDisruptionBudget has nothing to give.
 *
 * One thread.
 */
#include "evict/pauses.h"
#include "evict/permits.h"
#include "policy/victims/may_end.h"
#include "store/cluster.h"
#include "wire/controller.h"

/* Borrowed from the movers. */
struct mover {
    struct pod_view view; /* as its successor would be: without UID and node */
    const char *uid;
    struct controller controller; /* UID NULL: nobody makes it again */
    struct request *request;
    char *stays; /* why; NULL: it may be moved */
};

struct movers;

/* Of the cluster. `force`: those that nobody makes again may be moved as well. */
struct movers *movers_new(struct cluster *cluster, bool force);
void movers_free(struct movers *movers);
typedef struct movers movers; /* for g_autoptr */
G_DEFINE_AUTOPTR_CLEANUP_FUNC(movers, movers_free)

/* From here on, who is more important stays: its successor would take the room from whom it is made for. */
void movers_spare_above(struct movers *movers, int64_t priority);

/* Likewise, pods of these controllers stay, as long as their pauses last; borrowed. */
void movers_spare_paused(struct movers *movers, const struct pauses *paused);

/* Likewise, pods stay that have run for less than these say; borrowed. NULL: none. */
void movers_spare_new(struct movers *movers, const struct permits *permits);

/* Reads the pods of that node; the store's lock is taken, not held. False, with an error: they cannot be
 * read. */
bool movers_read(struct movers *movers, struct store *store, const char *node, GError **error);

/* Why a pod may not be moved, its budgets apart; NULL: it may. Free with g_free. */
char *movers_why_stays(const struct pod_view *pod, enum ender ender, bool force);

/* In the order in which they were read. */
guint movers_n(const struct movers *movers);
const struct mover *movers_get(const struct movers *movers, guint i);
