/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/ranking.h>
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
    if (one->waits != other->waits)
        return other->waits;
    for (size_t i = 0; i < RANK_TIES; i++) {
        if (one->ties[i] != other->ties[i])
            return one->ties[i] < other->ties[i];
    }
    return strcmp(one->name, other->name) < 0;
}

size_t ranking_winner(const struct policy *policy, const struct rank *ranks, size_t n)
{
    double least = n > 0 ? ranks[0].loss : 0;
    size_t winner = n;

    for (size_t i = 1; i < n; i++)
        least = MIN(least, ranks[i].loss);
    for (size_t i = 0; i < n; i++) {
        if (ranks[i].loss <= least + policy->slack &&
            (winner == n || is_better(&ranks[i], &ranks[winner])))
            winner = i;
    }
    return n > 0 ? winner : 0;
}

/* Marks go by what is lost; where nothing tells the nodes apart in that, by the first of the ties: of
 * devices that are taken whole it is how large they are. */
static double worth(const struct rank *rank, bool by_tie)
{
    return by_tie ? (double)rank->ties[0] : rank->loss;
}

void ranking_scale(const struct rank *ranks, size_t n, int32_t *ret_scores)
{
    bool by_tie = true;

    for (size_t i = 1; i < n; i++)
        by_tie &= ranks[i].loss == ranks[0].loss;
    double least = n > 0 ? worth(&ranks[0], by_tie) : 0, most = least;
    for (size_t i = 1; i < n; i++) {
        least = MIN(least, worth(&ranks[i], by_tie));
        most = MAX(most, worth(&ranks[i], by_tie));
    }
    for (size_t i = 0; i < n; i++) {
        const double part = most > least ? (most - worth(&ranks[i], by_tie)) / (most - least) : 1;
        const int32_t score = (int32_t)(part * RANKING_SCORE_MAX + 0.5);
        ret_scores[i] = MAX(score - ranks[i].waits, 0);
    }
}
