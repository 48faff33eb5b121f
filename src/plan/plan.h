/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pods to move, and where to, so that a goal is reached: the fewest moves that do.
 *
 * Pure: works on the ledger that it is given, which must be the caller's own copy
 * (ledger_copy_node), and leaves it as the moves would. No I/O, no clock, no lock.
 *
 * A move books the successor while its predecessor still counts, then ends the predecessor, so no
 * order of the two over-commits a card. Every move is tried on the ledger that the moves before it
 * leave. A pod moves once at most. A pod that just ends is a move like any other, for which no successor is
 * booked; that is not for a group, nor for what is fragmented.
 *
 * First those plans are looked at whose pods all leave one node and go straight to where there is room:
 * that is quick, whatever the size of the cluster. Then every order and every card of fewer moves, from
 * one move upwards, until PLAN_TRIES_MAX moves have been tried. Of as many moves those are taken whose
 * successors are on the cards that the policy chooses; else a successor may be on any card that takes it, which
 * has to be kept for it. Where the node side picks the card itself, and where a pod takes several cards or
 * devices, only the policy's own choice is tried on each node; with several cards, so, it is never certain that
 * there is no other way. What is fragmented is first brought down by the move that brings most of it down, then by the next
 * such move; where no single move helps, only the second search can. Of a node only the card that the policy
 * chooses is tried then, since that is where the successor will be. For a group room is first made for one of
 * its pods after the other, with the policy's cards likewise. Whether all of them fit is tried in every order of places, until PLAN_SEATS_MAX
 * have been tried.
 */
#include <gpuledger/demand.h>
#include <gpuledger/placement.h>

#define PLAN_MOVES_MAX 64
#define PLAN_TRIES_MAX 200000
#define PLAN_SEATS_MAX 20000 /* places for the pods of a group, each time it is asked */
#define PLAN_BUDGETS_MAX 4
#define PLAN_GROUP_MAX 64

/* A pod that the caller knows; who is in the ledger only stays where it is. Borrowed. */
struct plan_pod {
    const char *uid;
    const struct request *request;      /* what the successor will ask for */
    const char *owner;                  /* UID of its controller; NULL: nobody makes a successor */
    int64_t cost;                       /* of as many moves those are taken that cost less */
    const void *tag;                    /* the caller's own */
    bool refuses;                       /* it has opted out of being moved */
    bool ends;                          /* it needs no room elsewhere */
    uint32_t n_budgets;                 /* at most PLAN_BUDGETS_MAX */
    uint32_t budgets[PLAN_BUDGETS_MAX]; /* that its end draws on: places in `allowed` */
};

/* A request that is to find room; or pods that all are to find room at once; or a card or node that is to hold nobody; or else no more free GPU than
 * so much that the pods that are expected cannot use (gpuledger/fragmentation.h). */
struct plan_goal {
    const struct request *admit;
    const struct plan_pod
        *group;     /* of these the request and the tag count, and equal ones come in a row */
    size_t n_group; /* at most PLAN_GROUP_MAX; 0: that is not it */
    const char *node;
    int32_t card;                /* CARD_UNKNOWN: the whole node */
    const struct demand *demand; /* settled for this ledger; of no other goal */
    int64_t fragmented_most;     /* thousandths of a card, of all nodes together */
};

struct plan_query {
    struct plan_goal goal;
    const struct plan_pod *pods;
    size_t n_pods;
    const struct policy *policy; /* of nodes that have none of their own */
    const int64_t *allowed;      /* how many more pods of each budget may end */
    uint32_t n_allowed;
    uint32_t moves_max; /* at most PLAN_MOVES_MAX */
    uint32_t per_owner; /* moves; 0: any number */
    uint32_t per_node;  /* the same, of pods that leave the node */
    bool uncontrolled;  /* pods without a controller may be moved too */
    /* What the ledger does not know of pod and node, such as selectors and taints; the pod is NULL
     * for the one to admit, and one of the goal's for a group. NULL: nothing else is in the way. Asked about the same over and over. */
    bool (*admits)(const struct node *node, const struct plan_pod *pod, void *data);
    void *data;
};

/* Owned by the plan. */
struct plan_step {
    const struct plan_pod *pod;
    struct allocation *frees; /* what its end frees */
    struct allocation *takes; /* what is kept for the successor; NULL: the pod just ends */
    char *from, *to;          /* nodes; `to` is NULL likewise */
};

enum plan_outcome {
    PLAN_FOUND,   /* no steps: the goal is reached as it is */
    PLAN_NONE,    /* no moves that are allowed reach it */
    PLAN_GAVE_UP, /* none was found in PLAN_TRIES_MAX tries, or not every way is tried */
};

/* What is fragmented of all nodes, as that goal has it. */
int64_t plan_fragmented(const struct ledger *ledger, const struct demand *demand);

/* Steps in order, each to be taken when the successor of the one before is Ready. Array of struct
 * plan_step, the caller's (g_ptr_array_unref); empty unless PLAN_FOUND. `ret_fewest`: it is certain that
 * fewer do not reach the goal. */
enum plan_outcome plan_make(struct ledger *ledger, const struct plan_query *query, bool *ret_fewest,
                            GPtrArray **ret_steps);
