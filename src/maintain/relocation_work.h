/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/* A relocation that is being found, and its trial as a whole. For the files relocation*.c. */
#include "explain/trial.h"
#include "maintain/movers.h"
#include "maintain/relocation.h"
#include "plan/plan.h"

struct work {
    const struct relocation_query *query;
    struct relocation *found;
    struct store *copy; /* the cluster as it is, but that the place to be emptied is closed */
    struct json_arena *arena;
    struct pod_view admit;
    struct request *request; /* of the pod to admit, or NULL */
    GPtrArray *members;      /* struct mover: of the group that is to find room; or NULL */
    struct movers *movers;
    GHashTable *barred;      /* a set of texts: UID and node */
    struct demand *demand;   /* where what is fragmented is the goal; else NULL */
    enum reason reason;      /* why the pod to admit was refused at last */
    struct work_meter meter; /* of searches before and after the plan's own */
    bool cut;                /* one of them, or of a trial's, was cut short: no plan is found */
};

void work_clear(struct work *work);
typedef struct work work_cleared;
G_DEFINE_AUTO_CLEANUP_CLEAR_FUNC(work_cleared, work_clear)

/* Whether the node has the cards that the request asks for. False, and `cut`: that is not known. */
bool work_fits(struct work *work, const struct node *node, const struct request *request);

/* The pod is not to go to the node, NULL: the one to admit. */
bool work_is_barred(const struct work *work, const char *uid, const char *node);

/* The node side reads what the pod asks for, and kube-scheduler does not leave the node out, by its sums
 * neither. */
bool work_may_be_on(const struct pod_view *pod, const struct request *request,
                    const struct node *node);

/* The group's pods that are still to find room. `found` says it if nothing is to be done, or if nothing can be.
 * False, with an error: there is no such group. */
bool work_read_group(struct work *work, GError **error);
/* Any node takes them alike. */
bool work_are_alike(const struct mover *one, const struct mover *other);
/* Array of struct plan_pod, as a goal has them. */
GArray *work_group(const struct work *work);

/* Where cards are not what the pod to admit lacks: the fewest of the pods (struct plan_pod, which are sorted) whose
 * ends alone let it in, by all that the verbs ask. Array of struct plan_step, the caller's; NULL: none. `ret_fewest`:
 * that is certain. */
GPtrArray *work_find_ends(struct work *work, GArray *pods, bool *ret_fewest);

/* All steps one after the other, each placed as the verbs would, and then the goal. False: it does not hold,
 * and somebody is barred from some node. */
bool work_try(struct work *work, const GPtrArray *steps);
