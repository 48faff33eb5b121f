/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Where a pod that finds no room will go: a node, its cards there, and which pods have to end first.
 *
 * Of all nodes the one on which least must become free, in thousandths of a card; by name among
 * equals. There, of the pods that hold something, as many stay as can, the largest first; then, of
 * those who end there for older pods, as many as are not in this one's way, too. What ends is thereby
 * the least that suffices, so that whatever ends first, nobody who fits beside the rest and beside the
 * pod delays it there. How long pods run is not asked.
 *
 * It is kept although few clusters need it for single pods: a group of pods waits for room as a whole,
 * and what is kept for one pod here will be kept for each of a group.
 *
 * Pure but for the guesses of the ledger's look-ups; the caller serialises.
 */
#include "queue/nominees.h"
#include "quota/quotas.h"

struct reservation {
    char *node;
    struct allocation *held; /* what the pod will hold; outside any ledger */
    GPtrArray *ending;       /* UIDs of those who must end first, ended or not; owned */
};

/* Nobody has to end. */
struct reservation *reservation_new(const char *node, struct allocation *take_held);
/* Several may hold one, in several threads; what was made is not changed. */
struct reservation *reservation_ref(const struct reservation *place);
void reservation_unref(struct reservation *place); /* NULL is ignored */

/* Nobody had to end when it was chosen: the pod may go there now, and nothing is kept for it. */
bool reservation_is_open(const struct reservation *place);

struct reservation_query {
    struct ledger *ledger;
    struct nominees *nominees;              /* as the pod finds the nodes; its admission is asked */
    const struct quota_room *room;          /* the pod's, or NULL */
    const struct reservation *const *before;      /* of older pods, in order: these keep what they have */
    size_t n_before;
};

/* NULL: there is none, whoever ends. `ret_blocked`: but there may be when an older pod has come. */
struct reservation *reservation_choose(const struct reservation_query *query, bool *ret_blocked);

/* Whether the pod could still go to its place once those have ended. */
bool reservation_holds(const struct reservation *place, const struct reservation_query *query);

/* The node, as the pod finds it, with as much used of each card as is now or will be at any time
 * until the last of these places has been taken. What fits on it fits now and delays none of them.
 * Free with what_if_free; NULL: none of them is on the node. */
struct what_if *reservations_cover(const struct node *seen, const struct reservation *const *places, size_t n);

/* Whether the node would take the pod if nobody else were there; what may pass by itself, as an unhealthy card
 * does, is passed over. */
bool reservation_could_hold(const struct node *node, const struct admission_query *admission);

/* The request as a node side of the node reads it, or NULL. */
const struct request *reservation_read_for(const struct node *node, const struct request *request);

/* Whether some ask, read so, lacks room wherever it goes, told from the node's summary alone; false means
 * nothing. */
bool reservation_is_hopeless(const struct node *node, const struct request *request);
