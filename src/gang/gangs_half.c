/* SPDX-License-Identifier: Apache-2.0 */
/* Groups of which as many pods are bound as must be, and of which too few are. */
#include "gang/gangs_state.h"

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
        gang_change(gangs, gang);
        gang_rest(gangs, gang, 0);
        gangs->news = any = true;
    }
    return any;
}

static bool has_enough(const struct gang *gang)
{
    return gang->n[BOUND] + gang->n[PLAIN] >= gang->min;
}

/* How many it needed when those came who are bound; 0: nobody knows. */
static uint32_t came_with_of(const struct gang *gang)
{
    uint32_t came_with = 0;

    for (guint i = 0; i < gang->members->len; i++) {
        const struct gang_member *member = gang->members->pdata[i];
        came_with = MAX(came_with, member->stage == BOUND ? member->came_with : 0);
    }
    return came_with;
}

uint32_t gangs_came_with(const struct gangs *gangs, const char *uid)
{
    const struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);
    const struct gang *gang = member ? member->gang : NULL;
    const uint32_t came_with = gang && gang->whole ? came_with_of(gang) : 0;

    return came_with > 0 || !gang ? came_with : gang->min;
}

/* Whatever they came with: so many are bound that it is as if they had come now. Or of whom it is not
 * known. */
static void note_came(struct gang *gang, uint32_t min, bool all)
{
    for (guint i = 0; i < gang->members->len; i++) {
        struct gang_member *member = gang->members->pdata[i];
        if (member->stage == BOUND && (all || member->came_with == 0))
            member->came_with = min;
    }
}

void gang_note_whole(struct gangs *gangs, struct gang *gang)
{
    if (gang->min == 0 || !has_enough(gang))
        return;
    note_came(gang, gang->min, true);
    gang->recalled = false;
    if (gang->whole)
        return;
    gang->whole = true;
    gang->backoff_ms = 0;
    gang_rest(gangs, gang, 0);
    gang_want_nothing(gangs, gang, GANG_ROOM_CAME);
    gang_set_waiting(gangs, gang, false);
    gangs->news = true; /* another may have its places now */
}

void gang_recall(struct gangs *gangs, struct gang *gang)
{
    const uint32_t came_with = came_with_of(gang);

    if (gang->min == 0 || (gang->whole && !gang->recalled))
        return;
    gang->recalled =
        came_with > 0 && came_with < gang->min && gang->n[BOUND] + gang->n[PLAIN] >= came_with;
    gang->whole = gang->recalled;
    gang_note_half(gangs, gang);
}

/* The most that one of them says counts, with the longest time of those who say so. */
void gang_heed_pods(struct gangs *gangs, struct gang *gang)
{
    uint32_t most = 0, least = 0;
    int64_t timeout_ms = 0;

    gang->says_least = 0;
    if (gang->declared)
        return;
    for (guint i = 0; i < gang->members->len; i++) {
        const struct gang_member *member = gang->members->pdata[i];
        if (member->says == 0)
            continue;
        least = least == 0 ? member->says : MIN(least, member->says);
        timeout_ms = member->says > most    ? member->says_timeout_ms
                     : member->says == most ? MAX(timeout_ms, member->says_timeout_ms)
                                            : timeout_ms;
        most = MAX(most, member->says);
    }
    if (most == 0)
        return;
    gang->says_least = least;
    gang->timeout_ms = timeout_ms;
    gang_set_min(gangs, gang, most);
}

/* Who waited for that may be told yes now. */
void gang_set_min(struct gangs *gangs, struct gang *gang, uint32_t min)
{
    const bool first = gang->last_min == 0;

    gangs->news |= gang->min != min;
    if (gang->min != min)
        gang_want_nothing(gangs, gang, GANG_ROOM_LEFT);
    if (!first && min > gang->last_min)
        note_came(gang, gang->last_min, false);
    gang->min = gang->last_min = min;
    gang_note_whole(gangs, gang);
    if (first)
        gang_recall(gangs, gang);
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

static uint32_t find_raised_from(const struct gang *gang)
{
    const uint32_t came_with = gang->n[BOUND] > 0 && !has_enough(gang) ? came_with_of(gang) : 0;

    return came_with < gang->min ? came_with : 0;
}

void gang_note_half(struct gangs *gangs, struct gang *gang)
{
    gang->raised_from = find_raised_from(gang);
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
