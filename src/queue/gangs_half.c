/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of which as many pods are bound as must be, and of which too few are. */
#include "queue/gangs_state.h"

void gang_rest(struct gangs *gangs, struct gang *gang, int64_t again_ms)
{
    if (again_ms > 0 && gang->again_ms == 0)
        g_ptr_array_add(gangs->resting, gang);
    if (again_ms == 0 && gang->again_ms > 0)
        g_ptr_array_remove_fast(gangs->resting, gang);
    gang->again_ms = again_ms;
}

void gang_back_off(struct gangs *gangs, struct gang *gang, int64_t now_ms)
{
    gang->backoff_ms = CLAMP(gang->backoff_ms * 2, GANG_BACKOFF_MIN_MS, GANG_BACKOFF_MAX_MS);
    gang_rest(gangs, gang, now_ms + gang->backoff_ms);
}

bool gangs_end_rests(struct gangs *gangs, int64_t now_ms)
{
    bool any = false;

    for (guint i = gangs->resting->len; i > 0; i--) {
        struct gang *gang = g_ptr_array_index(gangs->resting, i - 1);
        if (now_ms < gang->again_ms)
            continue;
        gang_rest(gangs, gang, 0);
        gangs->news = any = true;
    }
    return any;
}

static bool has_enough(const struct gang *gang)
{
    return gang->n[BOUND] + gang->n[PLAIN] >= gang->min;
}

void gang_note_whole(struct gangs *gangs, struct gang *gang)
{
    if (gang->min == 0 || !has_enough(gang))
        return;
    gang->raised_from = 0;
    if (gang->whole)
        return;
    gang->whole = true;
    gang->backoff_ms = 0;
    gang_rest(gangs, gang, 0);
    gang_want_nothing(gangs, gang, GANG_ROOM_CAME);
    gangs->news = true; /* another may have its places now */
}

/* Who waited for that may be told yes now. */
void gang_set_min(struct gangs *gangs, struct gang *gang, uint32_t min)
{
    gangs->news |= gang->min != min;
    if (gang->min != min)
        gang_want_nothing(gangs, gang, GANG_ROOM_LEFT);
    if (gang->raised_from == 0 && gang->last_min > 0 && min > gang->last_min &&
        gang->members->len > 0)
        gang->raised_from = gang->last_min;
    if (min <= gang->raised_from)
        gang->raised_from = 0;
    gang->min = gang->last_min = min;
    gang_note_whole(gangs, gang);
    gang_note_half(gangs, gang);
}

bool gang_lacks_ended(const struct gang *gang)
{
    return gang->members->len < gang->min && gang->raised_from == 0;
}

static bool is_partly_bound(const struct gang *gang)
{
    return (!gang->whole || gang->raised_from > 0) && gang->n[BOUND] > 0 && !has_enough(gang);
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
