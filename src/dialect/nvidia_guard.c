/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/nvidia_guard.h"

#include <stdlib.h>

/* Replicas of one card at most; where it is not known how many there are, all may be. */
static int32_t replicas_of(const struct pool *pool)
{
    return MAX(pool->replicas > 0 ? pool->replicas : pool->capacity, 1);
}

static int64_t wants(const struct pool *pool, const struct terms *terms, int64_t devices)
{
    if (terms && terms->memory_wanted > 0)
        return terms->memory_wanted;
    return MIN(devices, replicas_of(pool)) * (pool->memory / replicas_of(pool));
}

static int64_t asked_devices(const struct request *request, const struct pool *pool)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < request->n_asks; i++)
        n += g_strcmp0(request->asks[i].device, pool->resource) == 0 ? request->asks[i].count : 0;
    return n;
}

static int64_t held_devices(const struct allocation *allocation, const struct pool *pool)
{
    int64_t n = 0;

    for (uint32_t i = 0; i < allocation->n_shares; i++)
        n += g_strcmp0(allocation->shares[i].device, pool->resource) == 0
                 ? allocation->shares[i].devices
                 : 0;
    return n;
}

static int compare_down(const void *a, const void *b)
{
    const int64_t left = *(const int64_t *)a, right = *(const int64_t *)b;

    return left > right ? -1 : left < right;
}

enum reason nvidia_guard_refuse(const struct node *node, const struct request *request,
                                const struct pool *pool)
{
    /* With MPS each replica has a limit; elsewhere one pod has the device. */
    if (!pool->shared || pool->isolation != ISOLATION_NONE || pool->memory == 0)
        return REASON_NONE;
    const int64_t own = wants(pool, request->terms, asked_devices(request, pool));
    if (own > pool->memory)
        return REASON_CARD_TOO_SMALL;

    g_autofree int64_t *all = g_new(int64_t, node->allocations->len + 1);
    int64_t sum = 0;
    guint n = 0;
    all[n++] = own;
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = node->allocations->pdata[i];
        const int64_t devices = held_devices(other, pool);
        /* Whatever a pod says, it has no more than its card. */
        if (devices > 0)
            all[n++] = MIN(wants(pool, other->terms, devices), pool->memory);
    }
    qsort(all, n, sizeof *all, compare_down);
    for (guint i = 0; i < n && i < (guint)replicas_of(pool); i++)
        sum += all[i];
    return sum > pool->memory ? REASON_SHARED_MEMORY : REASON_NONE;
}
