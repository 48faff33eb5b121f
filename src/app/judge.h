/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * May this pod go to that node: the whole of filter's question, which is admission beside those for
 * whom room is kept, quotas and the order of arrival. Whoever explains or foresees what filter says asks here, too.
 *
 * Under the store's lock from judge_init to judge_clear. What may change is the order of arrival, in
 * which an older pod gets its time; who only asks does so of a copy (store_copy).
 */
#include "app/store.h"
#include "core/constraints.h"

struct judge {
    struct ledger *ledger;
    struct arrivals *arrivals;
    struct admission_query admission;
    struct arrivals_query turn; /* points to `nominees`: a judge stays where it is */
    struct quota_room *room;    /* NULL: no limit */
    struct nominees nominees;
    const struct constraints *constraints; /* for judge_barrier; of the pod, or NULL */
    struct placement scratch; /* too large to be made for each node */

    /* Of the node that was asked about last: */
    const struct node *seen; /* with those on it for whom room is kept; until the next question */
    struct trial *cover;     /* the same, where that is for older pods */
    bool waits;                 /* it takes the pod, after one that waits there */
    struct arrivals_older older; /* REASON_EARLIER_POD: the pod it is left to */
};

/* Borrows the pod's UID and the request. The moment is what store_decide gave. */
void judge_init(struct judge *judge, struct store *store, const struct pod_view *pod,
                const struct request *request, const struct moment *moment);
void judge_clear(struct judge *judge);

/* REASON_NONE: it may, if only after a pod that waits there. `node` NULL: nobody knows it.
 * `ret_placement`, if not NULL, is set where it may. */
enum reason judge_node(struct judge *judge, const struct node *node,
                       struct placement *ret_placement);

/* What kube-scheduler leaves the node out for, before it asks: core/constraints.h, or CPU, memory or
 * the number of pods of the node. Of a pod whose constraints nobody has read only whether the node is cordoned. */
enum barrier judge_barrier(struct judge *judge, const struct node *node);
/* A sentence with label, taint or numbers. Free with g_free; NULL for BARRIER_NONE. */
char *judge_tell_barrier(struct judge *judge, const struct node *node, enum barrier barrier);

/* judge_node, and kube-scheduler asks about the node at all. */
bool judge_takes(struct judge *judge, const struct node *node, struct placement *ret_placement);
