/* SPDX-License-Identifier: Apache-2.0 */
#include <gpuledger/ranking.h>

#include <math.h>
#include <string.h>

/* In cards, for each replica of a pod that keeps apart from those: more than any node can be better. */
#define REPLICA_LOSS 1e3

void ranking_rate(const struct policy *policy, const struct node *node,
                  const struct placement *placement, const struct demand *demand,
                  struct rank *ret_rank)
{
    const struct terms *terms = placement->request->terms;

    *ret_rank = (struct rank){.name = node->name};
    if (policy->rate)
        policy->rate(node, placement, demand, ret_rank);
    if (terms && terms->replica_of)
        ret_rank->loss += node_replicas(node, NULL, terms->replica_of) * REPLICA_LOSS;
}

static bool is_better(const struct rank *one, const struct rank *other)
{
    for (size_t i = 0; i < RANK_TIES; i++) {
        if (one->ties[i] != other->ties[i])
            return one->ties[i] < other->ties[i];
    }
    return strcmp(one->name, other->name) < 0;
}

int ranking_compare(const struct rank *one, const struct rank *other)
{
    if (one->waits != other->waits)
        return one->waits ? 1 : -1;
    if (one->loss < other->loss || one->loss > other->loss)
        return one->loss < other->loss ? -1 : 1;
    return is_better(one, other) ? -1 : is_better(other, one);
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

/* Marks go by what is lost; where nothing tells the nodes apart in that, by the first of the ties: of
 * devices that are taken whole it is how large they are. */
static double worth(const struct rank *rank, bool by_tie)
{
    return by_tie ? (double)rank->ties[0] : rank->loss;
}

/* The least and the most of those that count; whether they differ. */
static bool find_range(const struct rank *ranks, size_t n, bool by_tie, double ret_range[2])
{
    const bool waits = all_wait(ranks, n);

    ret_range[0] = INFINITY;
    ret_range[1] = -INFINITY;
    for (size_t i = 0; i < n; i++) {
        if (ranks[i].waits != waits)
            continue;
        ret_range[0] = MIN(ret_range[0], worth(&ranks[i], by_tie));
        ret_range[1] = MAX(ret_range[1], worth(&ranks[i], by_tie));
    }
    return ret_range[1] > ret_range[0];
}

void ranking_scale(const struct rank *ranks, size_t n, int32_t *ret_scores)
{
    const bool waits = all_wait(ranks, n);
    double range[2];
    const bool by_tie = !find_range(ranks, n, false, range);
    const bool differ = !by_tie || find_range(ranks, n, true, range);

    for (size_t i = 0; i < n; i++) {
        const double part =
            differ ? (range[1] - worth(&ranks[i], by_tie)) / (range[1] - range[0]) : 1;
        ret_scores[i] =
            ranks[i].waits == waits ? (int32_t)(part * RANKING_SCORE_MAX + 0.5) : 0;
    }
}
