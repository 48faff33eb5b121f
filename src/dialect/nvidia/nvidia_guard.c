/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/nvidia/nvidia_guard.h"

#include "dialect/nvidia/nvidia.h"

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

/* Why a pod may be on a card beside as many others as the card has replicas now: kubelet knows its
 * devices by names that are not in use any more, and takes the card for free. */
enum naming {
    NAMED_AS_NOW,
    NAMED_BEYOND, /* it may be one of the replicas that the card had before it was made fewer */
    NAMED_OTHERWISE, /* "nvidia.com/gpu" has been renamed "nvidia.com/gpu.shared", or back */
    NAMINGS,
};

struct want {
    int64_t bytes;
    enum naming naming;
};

/* Who may meet on one card, at most, of each naming and of those before it but for the last. */
struct crowd {
    struct want *wants;
    guint n;
    guint most[NAMINGS];
};

static void add_holder(struct crowd *crowd, const struct node *node,
                       const struct allocation *allocation, const struct pool *pool)
{
    struct want want = {0};
    int64_t devices = 0;

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        if (!nvidia_are_of_pool(node, share, pool))
            continue;
        const guint replicas = (guint)MAX(share->replicas, 0);
        enum naming naming = NAMED_OTHERWISE;
        if (g_str_equal(share->device, pool->resource))
            naming = replicas == 0 || replicas > crowd->most[NAMED_AS_NOW] ? NAMED_BEYOND
                                                                           : NAMED_AS_NOW;
        want.naming = MAX(want.naming, naming);
        /* Those of whom nobody knows how many a card was follow those of whom somebody does. */
        crowd->most[naming] = MAX(crowd->most[naming],
                                  naming == NAMED_OTHERWISE && replicas == 0 ? G_MAXUINT : replicas);
        devices += share->devices;
    }
    if (devices == 0)
        return;
    /* Whatever a pod says, it has no more than its card. */
    want.bytes = MIN(wants(pool, allocation->terms, devices), pool->memory);
    crowd->wants[crowd->n++] = want;
}

static int compare_down(const void *a, const void *b)
{
    const struct want *left = a, *right = b;

    return left->bytes > right->bytes ? -1 : left->bytes < right->bytes;
}

/* The most that those may want who may meet on one card. */
static int64_t most_wanted(struct crowd *crowd)
{
    guint taken[NAMINGS] = {0};
    int64_t sum = 0;

    qsort(crowd->wants, crowd->n, sizeof *crowd->wants, compare_down);
    for (guint i = 0; i < crowd->n; i++) {
        const enum naming naming = crowd->wants[i].naming;
        const guint known = taken[NAMED_AS_NOW] + taken[NAMED_BEYOND];
        if (naming == NAMED_OTHERWISE ? taken[naming] == crowd->most[naming]
                                      : known == crowd->most[NAMED_BEYOND] ||
                                            taken[naming] == crowd->most[naming])
            continue;
        taken[naming]++;
        sum = MIN(sum + crowd->wants[i].bytes, AMOUNT_BYTES_MAX);
    }
    return sum;
}

enum reason nvidia_guard_refuse(const struct node *node, const struct request *request,
                                const struct pool *pool)
{
    /* With MPS each replica has a limit; elsewhere one pod has the device
     * (NVIDIA/k8s-device-plugin@v0.20.0:cmd/mps-control-daemon/mps/daemon.go). */
    if (!pool_may_be_shared(pool) || pool->sharing == SHARING_MPS || pool->memory == 0)
        return REASON_NONE;
    const int64_t own = wants(pool, request->terms, asked_devices(request, pool));
    if (own > pool->memory)
        return REASON_CARD_TOO_SMALL;

    g_autofree struct want *all = g_new(struct want, node->allocations->len + 1);
    const guint now = (guint)replicas_of(pool);
    struct crowd crowd = {all, 0, {now, now, 0}};
    crowd.wants[crowd.n++] = (struct want){own, NAMED_AS_NOW};
    for (guint i = 0; i < node->allocations->len; i++)
        add_holder(&crowd, node, node->allocations->pdata[i], pool);
    return most_wanted(&crowd) > pool->memory ? REASON_SHARED_MEMORY : REASON_NONE;
}
