/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a group may come, asked by filter for one of its pods: all get places, or none. */
#include "gang/gangs_state.h"

static enum gang_answer judge(const struct gangs *gangs, const struct gang *gang, const char *pool,
                              int64_t now_ms)
{
    if (gang->min == 0)
        return GANG_UNKNOWN;
    if (now_ms < gang->again_ms)
        return GANG_BACKOFF;
    if (gang_able(gang) < gang->min)
        return gang->min > GANG_MEMBERS_MAX ? GANG_CAPPED : GANG_FEW;
    if (gang_must_wait(gangs, gang, pool))
        return GANG_BUSY;
    return gang_tenant_of(gangs, gang->ns)->n_places + gang->n[KNOWN] - gang->n_barred >
                   GANGS_PLACES_MAX
               ? GANG_CAPPED
               : GANG_YES;
}

static bool has_enough_places(const struct gang *gang)
{
    return gang_there(gang) >= gang->min;
}

static bool is_spent(const struct gangs *gangs, const struct gang *gang, int64_t now_ms)
{
    return !gangs->keeper.unhurried &&
           gang_tenant_of(gangs, gang->ns)->rested_ms - now_ms > GANGS_AHEAD_MS;
}

enum gang_answer gangs_judge(const struct gangs *gangs, const char *uid, int64_t now_ms)
{
    const struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);

    if (!member || gang_is_free(member->gang))
        return GANG_NONE;
    const enum gang_answer answer = judge(gangs, member->gang, member->gang->pool, now_ms);
    return answer == GANG_YES && !has_enough_places(member->gang) &&
                   is_spent(gangs, member->gang, now_ms)
               ? GANG_SPENT
               : answer;
}

static bool is_short(const struct gang *gang)
{
    return !gang_is_free(gang) && (gang->min == 0 || gang_able(gang) < gang->min);
}

bool gangs_are_short(const struct gangs *gangs, const char *uid)
{
    const struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);

    return member && is_short(member->gang);
}

char **gangs_take_shifted(struct gangs *gangs)
{
    GPtrArray *uids = g_ptr_array_new();

    for (guint i = 0; i < gangs->touched->len; i++) {
        struct gang *gang = gangs->touched->pdata[i];
        const bool now = is_short(gang);
        gang->touched = false;
        if (now == gang->short_told)
            continue;
        gang->short_told = now;
        for (guint j = 0; j < gang->members->len; j++) {
            const struct gang_member *member = gang->members->pdata[j];
            if (member->stage == KNOWN)
                g_ptr_array_add(uids, g_strdup(member->uid));
        }
    }
    g_ptr_array_set_size(gangs->touched, 0);
    g_ptr_array_add(uids, NULL);
    return (char **)g_ptr_array_free(uids, FALSE);
}

/* Those without a place, who is asked about first. */
static GPtrArray *list_without(const struct gang *gang, struct gang_member *asked)
{
    GPtrArray *without = g_ptr_array_new();

    if (gang_wants_place(asked))
        g_ptr_array_add(without, asked);
    for (guint i = 0; i < gang->members->len; i++) {
        struct gang_member *member = g_ptr_array_index(gang->members, i);
        if (member != asked && gang_wants_place(member))
            g_ptr_array_add(without, member);
    }
    return without;
}

char **gangs_without(const struct gangs *gangs, const char *uid)
{
    struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);

    if (!member)
        return NULL;
    g_autoptr(GPtrArray) without = list_without(member->gang, member);
    char **uids = g_new0(char *, without->len + 1);
    for (guint i = 0; i < without->len; i++)
        uids[i] = g_strdup(((struct gang_member *)without->pdata[i])->uid);
    return uids;
}

static void note_work(struct gangs *gangs, const struct gang *gang, uint64_t work, int64_t now_ms)
{
    struct gang_tenant *tenant = gang_tenant_of(gangs, gang->ns);

    roll_change(&gangs->tenant_roll, &tenant->entry);
    tenant->rested_ms = MAX(tenant->rested_ms, now_ms) + (int64_t)(work * 1000 / GANGS_WORK_SECOND);
}

/* Places for all who have none; those who have one keep it. GANG_YES: enough have. */
static enum gang_answer hold(struct gangs *gangs, struct gang *gang, struct gang_member *asked,
                             const struct gang_ask *ask)
{
    uint64_t work = 0;
    g_autoptr(GPtrArray) without = list_without(gang, asked);
    g_autofree const char **uids = g_new0(const char *, without->len + 1);
    g_autofree bool *taken = g_new0(bool, without->len + 1);

    for (guint i = 0; i < without->len; i++)
        uids[i] = ((struct gang_member *)without->pdata[i])->uid;
    if (without->len > 0)
        work = ask->take(ask->data, uids, without->len, taken);
    note_work(gangs, gang, work, ask->now_ms);
    for (guint i = 0; i < without->len; i++) {
        if (taken[i])
            gang_set_stage(gangs, without->pdata[i], HELD);
    }
    gang->fit = gang_there(gang);
    return has_enough_places(gang) ? GANG_YES : work > GANG_WORK_MAX ? GANG_SPENT : GANG_NO_ROOM;
}

enum gang_answer gangs_ask(struct gangs *gangs, const struct gang_ask *ask)
{
    struct gang_member *member = g_hash_table_lookup(gangs->by_uid, ask->uid);
    struct gang *gang = member ? member->gang : NULL;
    enum gang_answer answer;

    if (!gang || member->stage >= BOUND || (gang_is_free(gang) && !gang_has_place(member->stage)))
        return GANG_NONE;
    gang_change(gangs, gang);
    if (gang_is_free(gang) || member->stage == DUE || member->stage == BOOKED) {
        /* It was whole before this one had come, or is on its way. */
        gang->asked_ms = ask->now_ms;
        return GANG_YES;
    }
    answer = judge(gangs, gang, ask->pool, ask->now_ms);
    if (answer == GANG_BUSY && gang_places(gang) == 0)
        gang->pool = ask->pool;
    gang_set_waiting(gangs, gang, answer == GANG_BUSY);
    gang_note_asked(gangs, gang, ask->now_ms);
    if (answer != GANG_YES && answer != GANG_BUSY)
        gang_want_nothing(gangs, gang, GANG_ROOM_LEFT);
    if (answer != GANG_YES) {
        gang_release(gangs, gang); /* a member went: what is left of the places is no group */
        return answer;
    }
    if (gang_has_place(member->stage) && has_enough_places(gang)) {
        gang->asked_ms = ask->now_ms;
        return GANG_YES;
    }
    if (ask->now_ms - gang->tried_ms < GANG_LOOK_MS && gang_places(gang) == 0)
        return GANG_NO_ROOM;
    answer = is_spent(gangs, gang, ask->now_ms) ? GANG_SPENT : GANG_YES;
    if (answer == GANG_YES) {
        gang->pool = ask->pool;
        gang->asked_ms = gang->tried_ms = ask->now_ms;
        answer = hold(gangs, gang, member, ask);
    }
    if (!has_enough_places(gang))
        gang_release(gangs, gang);
    if (answer == GANG_NO_ROOM)
        note_work(gangs, gang, gang_want_room(gangs, gang, ask), ask->now_ms);
    if (answer != GANG_YES)
        return answer;
    gang_want_nothing(gangs, gang, GANG_ROOM_CAME);
    if (gang->deadline_ms == 0) {
        gang->deadline_ms = ask->now_ms + gang->timeout_ms;
        gang->held_ms = ask->now_ms;
    }
    return member->stage == KNOWN ? GANG_NO_ROOM : GANG_YES;
}

void gangs_lose(struct gangs *gangs, const char *uid)
{
    struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);

    if (member && member->stage >= HELD && member->stage <= DUE) {
        gang_change(gangs, member->gang);
        gang_drop(gangs, member);
        member->gang->tried_ms = G_MININT64 / 2;
    }
}
