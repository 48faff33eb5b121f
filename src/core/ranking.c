/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/ranking.h>

#include <math.h>
#include <string.h>

void ranking_rate(const struct policy *policy, const struct node *node,
                  const struct placement *placement, const struct demand *demand,
                  struct rank *ret_rank)
{
    *ret_rank = (struct rank){.name = node->name};
    if (policy->rate)
        policy->rate(node, placement, demand, ret_rank);
}

static bool is_better(const struct rank *one, const struct rank *other)
{
    for (size_t i = 0; i < RANK_TIES; i++) {
        if (one->ties[i] != other->ties[i])
            return one->ties[i] < other->ties[i];
    }
    return strcmp(one->name, other->name) < 0;
}

/* Whether all of them would let the pod wait; else those that would do not count. */
static bool all_wait(const struct rank *ranks, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!ranks[i].waits)
            return false;
    }
    return true;
}

size_t ranking_winner(const struct policy *policy, const struct rank *ranks, size_t n)
{
    const bool waits = all_wait(ranks, n);
    double least = INFINITY;
    size_t winner = n;

    for (size_t i = 0; i < n; i++)
        least = ranks[i].waits == waits ? MIN(least, ranks[i].loss) : least;
    for (size_t i = 0; i < n; i++) {
        if (ranks[i].waits == waits && ranks[i].loss <= least + policy->slack &&
            (winner == n || is_better(&ranks[i], &ranks[winner])))
            winner = i;
    }
    return n > 0 ? winner : 0;
}

void ranking_scale(const struct rank *ranks, size_t n, int32_t *ret_scores)
{
    const bool waits = all_wait(ranks, n);
    double least = INFINITY, most = -INFINITY;

    for (size_t i = 0; i < n; i++) {
        least = ranks[i].waits == waits ? MIN(least, ranks[i].loss) : least;
        most = ranks[i].waits == waits ? MAX(most, ranks[i].loss) : most;
    }
    for (size_t i = 0; i < n; i++) {
        const double part = most > least ? (most - ranks[i].loss) / (most - least) : 1;
        ret_scores[i] =
            ranks[i].waits == waits ? (int32_t)(part * RANKING_SCORE_MAX + 0.5) : 0;
    }
}
