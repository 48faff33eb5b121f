/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/lookalikes.h"

/* Pods of a node lie anywhere in memory; while one is looked at, those after it come. */
#define PREFETCHED 8

static void prefetch(const GPtrArray *allocations, guint at)
{
    if (at >= allocations->len)
        return;
    const struct allocation *allocation = g_ptr_array_index(allocations, at);
    __builtin_prefetch(&allocation->waiting);
    __builtin_prefetch(&allocation->assume_time_ns);
}

void lookalikes_find(const struct node *node, const struct request *request,
                     struct in_flight *ret_in_flight)
{
    struct in_flight found = {.card = CARD_UNKNOWN, .since_ns = INT64_MAX};

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        prefetch(node->allocations, i + PREFETCHED);
        if (!other->waiting || other->dialect != request->dialect ||
            other->match_amount != request->match_amount)
            continue;
        found.restricted = true;
        found.since_ns = MIN(found.since_ns, other->assume_time_ns);
    }
    *ret_in_flight = found;
}

int64_t dialect_outranked(const struct node *node, const struct dialect *dialect)
{
    int64_t least = INT64_MAX;

    for (guint i = 0; node->promised && i < node->promised->len; i++) {
        const struct promised *promised = &g_array_index(node->promised, struct promised, i);
        if (promised->dialect == dialect && dialect->outranks &&
            dialect->outranks(node, promised->time))
            least = MIN(least, promised->time);
    }
    return least;
}
