/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * What a decision costs, counted in cards that are looked at, so that the same decision costs the same
 * again; and how much of that searches may still take.
 *
 * A look at the cards of a node for a pod that asks for one share is exact and costs as much as the node has
 * cards: it is never cut short. Where a pod asks for several, the cards for one depend on those of the
 * others, and a search takes turns that the pod's author can make many. All searches of a call share a
 * budget, to which each node that is asked about adds what a look at it costs a few times over. Once it is
 * spent, a node is told by what counts alone tell: that there is too little, or that there is enough if
 * the shares are put side by side; else nothing is known, and the reason is work_limit.
 *
 * Not shared between threads.
 */
#include <gpuledger/ledger.h>
#include <stdbool.h>
#include <stdint.h>

#define WORK_CALL 16384 /* what the searches of a call may take beside what its nodes add */
#define WORK_APART INT64_C(1048576) /* the same of one that keeps no lock */
#define WORK_TURN (WORK_CALL / 2)   /* a node for whose search so much is left has its turn */
#define WORK_NODE 32                /* what asking about a node costs, whatever it has */
#define WORK_VALUES                                                                                \
    16 /* of a pod's constraints (core/constraints.h): so many cost as much as a card */
#define WORK_MODELS 32 /* models that are remembered */
#define WORK_MODEL_BYTES 64

struct work_meter {
    int64_t done;              /* all that was counted */
    int64_t left;              /* for searches; below 0: a search has taken a little more */
    bool cut;                  /* some search ended early, and counts did not tell */
    bool hasty;                /* what was found last was not found by a whole search */
    const struct terms *terms; /* whose models these are */
    struct work_model {
        char model[WORK_MODEL_BYTES]; /* "": none */
        bool accepted;
    } models[WORK_MODELS];
};

/* Where a call begins. */
void work_begin(struct work_meter *work);

/* terms_accept_card, with a model judged once. The work may be NULL. */
bool work_accept_card(struct work_meter *work, const struct terms *terms, const struct card *card);

/* Whether something may be done for a node that costs so much, and that the pod's author can make dear: what
 * goes beyond WORK_NODE is of what searches may take. False, and `cut`: there is not so much left. */
bool work_afford(struct work_meter *work, int64_t n);

/* NULL is ignored. */
static inline void work_do(struct work_meter *work, int64_t n)
{
    if (work)
        work->done += n;
}
