/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * The search for a plan: steps are taken on the ledger and taken back. For the files of this folder.
 */
#include "plan/plan.h"
#include "policy/effort/work_meter.h"

struct search {
    struct ledger *ledger;
    const struct plan_query *query;
    GPtrArray *steps;           /* taken so far: struct plan_step */
    bool *moved;                /* of each pod of the query */
    const struct plan_pod *who; /* of a group, for which room is being made alone; else NULL */
    bool unsure;                /* whether the group fitted was not found out once */
    uint32_t seats;             /* places that were tried for the group this time */
    int64_t fragmented;         /* of all nodes now, where that is the goal */
    uint32_t tries;
    bool gave_up;
    bool pins;      /* a successor may be on any card that takes it, and not only on the policy's */
    bool could_pin; /* there was another card than the policy's */
    GHashTable *seen; /* where pods were (search_state) -> by how many moves more, in vain */
    struct work_meter *meter; /* whether a search for cards was cut short: then nobody moves */
};

/* Counts one more try; false: there were too many. */
bool search_try(struct search *search);

const struct policy *search_policy(const struct search *search, const struct node *node);

/* Where the request goes on the node as the policy has it; whether it goes there at all. */
bool search_place(const struct search *search, const struct node *node,
                  const struct request *request, int32_t pinned, struct placement *ret_placement);
bool search_fits(const struct search *search, const struct node *node,
                 const struct request *request);

/* Whether any card of the node can be chosen for the pod, instead of by the policy. */
bool search_any_card(const struct search *search, const struct request *request,
                     const struct node *node);
/* The same for a successor. Not where it matters which card it has in the end. */
bool search_may_pin(const struct search *search, const struct request *request,
                    const struct node *node);

/* Where the policy has the successor on that node once the pod has left; false: nowhere, or where the pod
 * is. */
bool search_land(struct search *search, size_t pod, const char *to,
                 struct placement *ret_placement);

/* A number for who has moved, and where to; the same for every order of the steps. */
uint64_t search_state(const struct search *search);

/* The pod, NULL the one to admit, may be on the node as far as it can be told without cards. */
bool search_admits(const struct search *search, const struct node *node,
                   const struct plan_pod *pod);

/* The pod is to leave for the goal, if that is a place to be emptied. */
bool search_is_in_the_way(const struct search *search, const struct allocation *holder);
/* The placement is in such a place. */
bool search_refills(const struct search *search, const struct node *node,
                    const struct placement *placement);

/* The pod is there, has not moved, and the limits leave room for one more move of it. */
bool search_may_move(const struct search *search, size_t pod);

/* Takes the step if there is room for it while the predecessor still counts. */
bool search_move(struct search *search, size_t pod, const char *to,
                 const struct placement *placement);
/* The pod ends, and nothing is taken for a successor. */
void search_end(struct search *search, size_t pod);
/* Takes back all steps but the first `n`. */
void search_return(struct search *search, guint n);

/* Takes back one that was the last of those taken, wherever it is listed. */
void search_undo(struct search *search, const struct plan_step *step);

bool search_reached(struct search *search);
/* The pod to admit, alone, has room on the node. */
bool search_admits_goal(const struct search *search, const struct node *node);
/* Moves that are needed at least: who is to leave leaves by one move of his own. */
uint32_t search_least_moves(const struct search *search);

void search_step_free(void *step);

/* A place for one pod of the group on the ledger, for as long as others are looked for. */
bool seat_take(struct search *search, size_t member, const struct node *node,
               const struct placement *placement);
void seat_leave(struct search *search, size_t member);
/* Makes room for one pod of the group after the other, in all by at most `most` steps. */
bool group_find(struct search *search, uint32_t most);

/* Brings down what is fragmented by at most `most` steps, each the one that helps most; as far as that
 * goes. */
bool gather_find(struct search *search, uint32_t most);

/* Reaches the goal by steps that each go straight to where there is room, and all leave one node or the
 * place to be emptied. At most `most` steps. */
bool direct_find(struct search *search, uint32_t most);
