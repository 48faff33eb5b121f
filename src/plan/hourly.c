/* SPDX-License-Identifier: Apache-2.0 */
#include "plan/hourly.h"

int64_t hourly_wait_ms(const GArray *times_ms, uint32_t per_hour, int64_t now_ms)
{
    if (per_hour == 0 || times_ms->len < per_hour)
        return 0;
    return MAX(g_array_index(times_ms, int64_t, times_ms->len - per_hour) + HOURLY_MS - now_ms, 0);
}

uint32_t hourly_left(const GArray *times_ms, uint32_t per_hour, int64_t now_ms)
{
    uint32_t n = 0;

    if (per_hour == 0)
        return UINT32_MAX;
    while (n < times_ms->len && n < per_hour &&
           g_array_index(times_ms, int64_t, times_ms->len - 1 - n) > now_ms - HOURLY_MS)
        n++;
    return per_hour - n;
}
