/* SPDX-License-Identifier: Apache-2.0 */
#include "verbs/leadership.h"

#include <gpuledger/error.h>

uint64_t leadership_term(struct leadership *leadership)
{
    return leadership ? leadership->ops->term(leadership) : 1;
}

int64_t leadership_cut(struct leadership *leadership, uint64_t term, int64_t deadline_ms)
{
    return leadership ? MIN(deadline_ms, leadership->ops->until_ms(leadership, term)) : deadline_ms;
}

bool leadership_publish(struct leadership *leadership, uint64_t term, int64_t deadline_ms, GError **error)
{
    return !leadership || leadership->ops->publish(leadership, term, deadline_ms, error);
}

void leadership_set_error(GError **error)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                "this replica of gpuledger stands by, another one holds the Lease; try again");
}
