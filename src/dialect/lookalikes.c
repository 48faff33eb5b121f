/* SPDX-License-Identifier: Apache-2.0 */
#include "dialect/lookalikes.h"

int lookalikes_find(const struct node *node, const struct request *request,
                    struct in_flight *ret_in_flight)
{
    struct in_flight found = {.card = CARD_UNKNOWN, .since_ns = INT64_MAX};
    int n = 0;

    for (guint i = 0; node->n_cards > 1 && i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        if (!other->waiting || other->dialect != request->dialect ||
            other->match_amount != request->match_amount)
            continue;
        int32_t card = other->shares[0].card;
        found.card = !found.restricted || found.card == card ? card : CARD_UNKNOWN;
        found.restricted = true;
        found.since_ns = MIN(found.since_ns, other->assume_time_ns);
        n++;
    }
    *ret_in_flight = found;
    return n;
}
