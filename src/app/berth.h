/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a pod that finds no room will go: a node, its cards there, and which pods have to end first.
 *
 * Of all nodes the one on which least must become free, in thousandths of a card; by name among
 * equals. There, of the pods that hold something, as many stay as can, the largest first. What ends
 * is thereby the least that suffices, so that whatever ends first, nobody who fits beside the rest
 * and beside the pod delays it there. How long pods run is not asked.
 *
 * Pure but for the guesses of the ledger's look-ups; the caller serialises.
 */
#include "app/nominations.h"
#include "app/quotas.h"

struct berth {
    char *node;
    struct allocation *held; /* what the pod will hold; outside any ledger */
    GPtrArray *ending;       /* UIDs of those who must end first, ended or not; owned */
};

/* Nobody has to end. */
struct berth *berth_new(const char *node, struct allocation *take_held);
void berth_free(struct berth *place); /* NULL is ignored */
struct berth *berth_dup(const struct berth *place);

/* Nobody had to end when it was chosen: the pod may go there now, and nothing is kept for it. */
bool berth_is_open(const struct berth *place);

struct berth_query {
    struct ledger *ledger;
    struct nominees *nominees;              /* as the pod finds the nodes; its admission is asked */
    const struct quota_room *room;          /* the pod's, or NULL */
    const struct berth *const *before;      /* of older pods, in order: these keep what they have */
    size_t n_before;
};

/* NULL: there is none, whoever ends. `ret_blocked`: but there may be when an older pod has come. */
struct berth *berth_choose(const struct berth_query *query, bool *ret_blocked);

/* Whether the pod could still go to its place once those have ended. */
bool berth_holds(const struct berth *place, const struct berth_query *query);

/* The node, as the pod finds it, with as much used of each card as is now or will be at any time
 * until the last of these places has been taken. What fits on it fits now and delays none of them.
 * Free with trial_free; NULL: none of them is on the node. */
struct trial *berths_cover(const struct node *seen, const struct berth *const *places, size_t n);

/* The request as a node side of the node reads it, or NULL. */
const struct request *berth_read_for(const struct node *node, const struct request *request);

/* Whether some ask, read so, lacks room wherever it goes, told from the node's summary alone; false means
 * nothing. */
bool berth_is_hopeless(const struct node *node, const struct request *request);
