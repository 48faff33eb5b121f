/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/rate.h"

int64_t rate_wait_ms(const GArray *times_ms, uint32_t most, int64_t span_ms, int64_t now_ms)
{
    if (most == 0 || times_ms->len < most)
        return 0;
    return MAX(g_array_index(times_ms, int64_t, times_ms->len - most) + span_ms - now_ms, 0);
}

uint32_t rate_left(const GArray *times_ms, uint32_t most, int64_t span_ms, int64_t now_ms)
{
    uint32_t n = 0;

    if (most == 0)
        return UINT32_MAX;
    while (n < times_ms->len && n < most &&
           g_array_index(times_ms, int64_t, times_ms->len - 1 - n) > now_ms - span_ms)
        n++;
    return most - n;
}
