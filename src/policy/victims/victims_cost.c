/* SPDX-License-Identifier: Apache-2.0 */
#include "policy/victims/victims_cost.h"

#include <stdlib.h>

static int compare(int64_t one, int64_t other)
{
    return (one > other) - (one < other);
}

/* The search asks it at every step, and mostly the first pairs tell. */
int victims_cost_compare(const struct victims_cost *a, const struct victims_cost *b)
{
    if (a->violations != b->violations)
        return compare(a->violations, b->violations);
    if (a->dearest != b->dearest)
        return compare(a->dearest, b->dearest);
    if (a->highest != b->highest)
        return compare(a->highest, b->highest);
    if (a->sum != b->sum)
        return compare(a->sum, b->sum);
    if (a->idle_highest != b->idle_highest)
        return compare(a->idle_highest, b->idle_highest);
    if (a->idle_sum != b->idle_sum)
        return compare(a->idle_sum, b->idle_sum);
    if (a->n != b->n)
        return compare(a->n, b->n);
    if (a->oldest != b->oldest)
        return compare(b->oldest, a->oldest);
    return compare(a->going, b->going);
}

bool victim_ends_as_idle(const struct victim *victim)
{
    return victim->idle && victim->seat->order == VICTIMS_FIRST;
}

/* Fixed ones first, then the dearest. */
static int compare_victims(const void *a, const void *b)
{
    const struct victim *left = a, *right = b;
    const struct seat *one = left->seat, *other = right->seat;

    if (left->fixed != right->fixed)
        return left->fixed ? -1 : 1;
    if (one->terminating != other->terminating)
        return other->terminating ? -1 : 1;
    if ((left->n_budgets > 0) != (right->n_budgets > 0))
        return left->n_budgets > 0 ? -1 : 1;
    if (one->order != other->order)
        return one->order > other->order ? -1 : 1;
    if (victim_ends_as_idle(left) != victim_ends_as_idle(right))
        return victim_ends_as_idle(right) ? -1 : 1;
    return (one > other) - (one < other); /* as the roster has them */
}

/* Where it stands is not told by its seat alone. */
static bool is_special(const struct victim *victim)
{
    return victim->fixed || victim->idle || victim->n_budgets > 0;
}

/* Who came in this order mostly stands in it: then nothing is moved. */
void victims_sort(struct victim *victims, size_t n)
{
    size_t sorted = 1;

    while (sorted < n && (is_special(&victims[sorted - 1]) || is_special(&victims[sorted])
                              ? compare_victims(&victims[sorted - 1], &victims[sorted]) < 0
                              : victims[sorted - 1].seat < victims[sorted].seat))
        sorted++;
    if (sorted < n)
        qsort(victims, n, sizeof *victims, compare_victims);
}

/* Source: kubernetes/kubernetes 1.37.2, pkg/scheduler/util/utils.go, GetEarliestPodStartTime. */
int64_t victims_cost_oldest(const struct victims_cost *cost, int64_t priority, int64_t started_s)
{
    const int64_t highest = MAX(cost->highest, cost->idle_highest);

    if (priority > highest)
        return started_s;
    return priority == highest ? MIN(cost->oldest, started_s) : cost->oldest;
}
