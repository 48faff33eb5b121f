/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which pods of namespaces that have borrowed should end on a node, so that a pod finds room there that its
 * own namespace is sure of.
 *
 * Of all sets that do, the one that costs least: fewest violated budgets; whom their classes let end first
 * (gpuledger/work_class.h), as preemption has it; the least of all cards together;
 * the highest priority among them as low as possible; fewest pods; the oldest of them as young as possible.
 *
 * Namespaces may be below others: each of them then has to have borrowed what is given back, up to what has
 * the claimant below it, too.
 *
 * Only what is borrowed is taken back. A pod may end only if its namespace has borrowed some of what it
 * holds, and if of nothing that it holds the namespace then has less than its min that has that much now.
 * This holds for all that end together.
 *
 * Up to RECLAIM_FEW pods every set is looked at; where one card is asked for, card by card. Of more pods,
 * those on the cards that are cheapest to clear end, as few of them as suffice. It is taken for granted that
 * a pod that finds room still does when another one ends; where it does not, nothing is found. Pure.
 */
#include "core/amount_sum.h"
#include "policy/what_if.h"

#define RECLAIM_KEYS_MAX 32
#define RECLAIM_BUDGETS_MAX 4
#define RECLAIM_FEW 12
#define RECLAIM_TRIES_MAX 20000 /* questions whether there is room, for one node */

/* A namespace that may have to give back: by key, what it holds and is sure of. */
struct borrower {
    struct borrower *parent; /* what it is a part of and has to have borrowed, too; NULL: nothing */
    amount_sum held[RECLAIM_KEYS_MAX];
    int64_t min[RECLAIM_KEYS_MAX];
};

/* A pod that may end for it. */
struct giver {
    struct allocation *allocation; /* one of the what-if node's */
    struct borrower *borrower;
    int64_t amounts[RECLAIM_KEYS_MAX]; /* that it holds, by key */
    int64_t gpus;                      /* the same in thousandths of a card */
    uint32_t n_budgets;
    uint32_t budgets[RECLAIM_BUDGETS_MAX]; /* places in `allowed` */
    bool chosen;                           /* the answer */
};

struct reclaim_query {
    bool (*admits)(const struct node *node, void *data); /* whether the pod finds room on it so */
    void *data;
    uint32_t n_keys;
    const int64_t *allowed; /* how many more pods of each budget may end */
    uint32_t n_allowed;
    bool one_card; /* who is not on a card does not keep the pod from it */
};

struct reclaim_cost {
    int64_t violations;
    int64_t dearest; /* enum victim_order; INT64_MIN: nobody */
    int64_t gpus;
    int64_t highest; /* priority; INT64_MIN: nobody */
    int64_t n;
    int64_t oldest; /* Unix time; INT64_MAX: nobody */
};
/* Negative, 0, positive, as the first is better, as good, or worse. */
int reclaim_cost_compare(const struct reclaim_cost *a, const struct reclaim_cost *b);

/* Whether a pod that holds so much may end now; and as if it had ended (1), or had not (-1). */
bool borrower_may_give(const struct borrower *borrower, const int64_t *amounts, uint32_t n_keys);
void borrower_give(struct borrower *borrower, const int64_t *amounts, uint32_t n_keys, int sign);

/* False: nothing helps that may end. Leaves node and borrowers as they were. */
bool reclaim_choose(struct what_if *what_if, const struct reclaim_query *query,
                    struct giver *givers, size_t n, struct reclaim_cost *ret_cost);
