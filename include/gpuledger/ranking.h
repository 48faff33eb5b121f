/* SPDX-License-Identifier: Apache-2.0 */
#pragma once
/*
 * Which of many nodes a request goes to. Each node that would take it is rated by the policy; the
 * ratings of one policy compare, those of two do not. Pure: reads the nodes, changes nothing; the
 * caller serialises access to the ledger.
 *
 * kube-scheduler breaks ties between nodes at random, and random ties cost more than most policies
 * gain, so ties are settled here: there is always one winner.
 */
#include <gpuledger/names.h>
#include <gpuledger/placement.h>

#pragma GCC visibility push(default)

#define RANK_TIES 3

/* Lower is better everywhere. */
struct rank {
    double loss; /* what the node is worth less afterwards, in cards */
    bool waits;  /* the placement must wait for an earlier pod there: behind all that need not */
    int64_t ties[RANK_TIES]; /* decide, in order, between losses that count as equal */
    const char *name; /* the node's; decides at last */
};

/* Rates the node for a placement on it, which is not made yet; sets all but `waits`. A pod without a
 * GPU is placed too, by a request without asks. The demand may be NULL. */
void ranking_rate(const struct policy *policy, const struct node *node,
                  const struct placement *placement, const struct demand *demand,
                  struct rank *ret_rank);

/* The best of them; n of 0 gives 0. */
size_t ranking_winner(const struct policy *policy, const struct rank *ranks, size_t n);

/* The highest mark that `ranking_scale` gives: extender/v1 MaxExtenderPriority. */
#define RANKING_SCORE_MAX 10

/* Negative: the policy, if it has no slack, takes the one before the other; never 0 for two nodes. */
int ranking_compare(const struct rank *one, const struct rank *other);

/* Marks from 0 for the worst loss to RANKING_SCORE_MAX for the best. Where losses are all equal the
 * first of the ties is taken for them; all are the best if that is equal, too. Where the pod would have
 * to wait it is 0, unless it would everywhere. */
void ranking_scale(const struct rank *ranks, size_t n, int32_t *ret_scores);

#pragma GCC visibility pop
