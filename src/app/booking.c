/* SPDX-License-Identifier: Apache-2.0 */
#include "app/booking.h"

#include <string.h>

static int64_t next_assume_time(const struct node *node, int64_t time_ns)
{
    for (guint i = 0; i < node->allocations->len; i++) {
        const struct allocation *other = g_ptr_array_index(node->allocations, i);
        if (other->assume_time_ns >= time_ns)
            time_ns = other->assume_time_ns + 1;
    }
    return time_ns;
}

struct allocation *booking_reserve(struct ledger *ledger, const struct node *node,
                                   const struct booking_entry *entry,
                                   const struct placement *placement, enum reason *ret_reason)
{
    const struct request *request = placement->request;
    struct allocation *allocation =
        allocation_new(entry->uid, entry->ns, entry->name, placement->n_shares);

    allocation->dialect = request->dialect;
    allocation->state = ALLOCATION_RESERVED;
    allocation->terms = terms_ref(request->terms);
    allocation->waiting = request->dialect->in_flight != NULL;
    allocation->host = request->host;
    allocation->match_amount = request->match_amount;
    allocation->assume_time_ns = next_assume_time(node, entry->moment->now_ns);
    allocation->since_ms = entry->moment->now_ms;
    memcpy(allocation->shares, placement->shares,
           placement->n_shares * sizeof *placement->shares);
    return ledger_reserve(ledger, node->name, allocation, ret_reason);
}
