/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of which some pods are bound, and too few. */
#include "queue/gangs_state.h"

static bool is_partly_bound(const struct gang *gang)
{
    return !gang->whole && gang->n[BOUND] > 0 && gang->n[BOUND] + gang->n[PLAIN] < gang->min;
}

bool gang_is_half(const struct gang *gang)
{
    return is_partly_bound(gang) && gang->n[DUE] + gang->n[BOOKED] == 0;
}

void gang_note_half(struct gangs *gangs, struct gang *gang)
{
    const bool half = is_partly_bound(gang);

    if (half == gang->half)
        return;
    gang->half = half;
    gang->half_ms = 0;
    if (half)
        g_ptr_array_add(gangs->halves, gang);
    else
        g_ptr_array_remove_fast(gangs->halves, gang);
}

void gangs_time_halves(struct gangs *gangs, int64_t now_ms)
{
    for (guint i = 0; i < gangs->halves->len; i++) {
        struct gang *gang = g_ptr_array_index(gangs->halves, i);
        if (gang->half_ms == 0)
            gang->half_ms = MAX(now_ms, 1);
    }
}
