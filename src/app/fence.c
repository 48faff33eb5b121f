/* SPDX-License-Identifier: Apache-2.0 */
#include "app/fence.h"

#include <gpuledger/error.h>

uint64_t fence_term(struct fence *fence)
{
    return fence ? fence->ops->term(fence) : 1;
}

int64_t fence_cut(struct fence *fence, uint64_t term, int64_t deadline_ms)
{
    return fence ? MIN(deadline_ms, fence->ops->until_ms(fence, term)) : deadline_ms;
}

bool fence_publish(struct fence *fence, uint64_t term, int64_t deadline_ms, GError **error)
{
    return !fence || fence->ops->publish(fence, term, deadline_ms, error);
}

void fence_set_error(GError **error)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_UNAVAILABLE,
                "this replica of gpuledger stands by, another one holds the Lease; try again");
}
