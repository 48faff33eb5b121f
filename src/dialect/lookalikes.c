/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/lookalikes.h"

void lookalikes_find(const struct node *node, const struct request *request,
                     struct in_flight *ret_in_flight)
{
    struct in_flight found = {.card = CARD_UNKNOWN, .since_ns = INT64_MAX};

    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        if (!other->waiting || other->dialect != request->dialect ||
            other->match_amount != request->match_amount)
            continue;
        found.restricted = true;
        found.since_ns = MIN(found.since_ns, other->assume_time_ns);
    }
    *ret_in_flight = found;
}
