/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pods should end so that another one finds room on their node.
 *
 * Of all sets of pods after whose end it does, the one that costs least, as kube-scheduler weighs
 * nodes against each other: fewest violated budgets; then, before all else, whom their classes let end
 * first (gpuledger/work_class.h); the highest priority among the victims as low
 * as possible; the lowest sum of priorities, counted from the lowest there is; fewest pods; among those
 * of the highest priority, the one that started first as late as possible. Who is being deleted anyway costs nothing. Source of the
 * order: pickOneNodeForPreemption in kube-scheduler, pkg/scheduler/framework/preemption.
 *
 * Of a class that lets its pods end first, those that are known to be idle (policy/idleness.h) end before
 * the others: their priorities count after those of all others. Where nobody is known to be idle, nothing
 * is otherwise than if nobody asked.
 *
 * kube-scheduler knows of things of which nothing is known here, so it may have named victims of its
 * own. One of those may be spared only if the victims together free enough of everything that the pod
 * asks for and that kube-scheduler adds up: what the pod lacks of it, where the caller knows that
 * (`lacks`) and where it explains why each of them was named, since without it the pod would still
 * lack something; else as much as all that it has named.
 *
 * Up to VICTIMS_FEW pods every set is looked at that may be the best. Among more of them it is taken
 * for granted that a pod that finds room still does when another one ends, which is not so where a
 * node side picks the card itself (`fickle`); where one card is asked for, who is on it is looked at card
 * by card; and the search ends after VICTIMS_TRIES_MAX looks with
 * the best that it has found.
 */
#include "policy/victims/roster.h"

#define VICTIMS_FEW 12
/* kube-scheduler adds priorities up from here, so that a pod more is never better. */
#define VICTIMS_LOWEST_PRIORITY (-(INT64_C(1) << 31))
#define VICTIMS_TRIES_MAX 4096
#define VICTIM_BUDGETS_MAX 4
/* CPU and memory of the node, how many pods it takes, and the rest. */
#define VICTIM_AMOUNTS_MAX (3 + POD_FACTS_AMOUNTS_MAX)

struct victim {
    const struct seat *seat;
    bool named; /* by kube-scheduler */
    bool fixed; /* is to end in any case */
    bool idle;  /* ends before others of its class, if its class ends first */
    uint8_t n_budgets;
    uint32_t budgets[VICTIM_BUDGETS_MAX]; /* that its end would draw on: places in `allowed` */
};

struct victims_query {
    bool (*admits)(const struct node *node, void *data); /* whether the pod finds room on it so */
    void *data;
    struct host asked_host; /* of the pod that is to find room */
    const struct pod_facts *asked;
    /* What it lacks of that: CPU and memory as far as it asks for them, each of `asked`, and places
     * for pods; INT64_MAX: not known. NULL: nothing of it is. */
    const int64_t *lacks;
    const int64_t *allowed; /* how many more pods of each budget may end */
    uint32_t n_allowed;
    /* Pods that kube-scheduler has named and that may not end: the victims owe what these would free. */
    const struct seat *const *spared;
    size_t n_spared;
    bool
        one_card; /* who is not on a card does not keep the pod from that card (dialect_asks_one_card) */
    bool fickle; /* the end of one more pod may take the room away again */
};

struct victims_cost {
    int64_t violations;
    int64_t dearest; /* enum victim_order, one below VICTIMS_FIRST: all idle; INT64_MIN: nobody */
    int64_t highest; /* priority; INT64_MIN: nobody */
    int64_t sum;
    int64_t idle_highest, idle_sum; /* likewise, of the idle ones, whom the two before leave out */
    int64_t n;
    int64_t
        oldest;    /* first start at the highest priority, Unix time; INT64_MAX: none has started */
    int64_t going; /* who is being deleted anyway; nothing before this counts them */
};

struct victims {
    struct victim *all;
    size_t n;
    size_t n_chosen; /* the answer: the first of them */
};

/* False: nothing helps. Leaves the what-if node as it was, and it is as it was when the roster was made.
 * The victims, of seats of the roster, are put in another order: those that are chosen first. */
bool victims_choose(struct what_if *what_if, const struct roster *roster,
                    const struct victims_query *query, struct victims *victims,
                    struct victims_cost *ret_cost);
