/* SPDX-License-Identifier: Apache-2.0 */
/* From bind's first look at a member to what became of its Binding. */
#include "gang/gangs_state.h"

/* One look of a member at its group. */
struct looking {
    const struct gangs *gangs;
    const struct gang_gate *gate;
    const struct gang_member *asked;
    int64_t now_ms;
};

/* It was so a moment ago, and nothing of the node has changed. */
static bool is_still_behind(const struct looking *looking, const struct gang_member *member,
                            uint64_t version)
{
    return member->behind && version != 0 && member->answered == version &&
           member->answered_in == looking->gangs->round && looking->now_ms >= member->answered_ms &&
           looking->now_ms - member->answered_ms < GANG_ANSWER_MS;
}

static void ask_about(const struct looking *looking, struct gang_member *member)
{
    const struct gang_gate *gate = looking->gate;
    const uint64_t version = gate && gate->version ? gate->version(gate->data, member->uid) : 0;

    if (!gate) {
        member->behind = false;
        return;
    }
    if (member != looking->asked && is_still_behind(looking, member, version))
        return;
    member->behind = !gate->takes(gate->data, member->uid);
    member->answered = version;
    member->answered_ms = looking->now_ms;
    member->answered_in = looking->gangs->round;
}

/* Whose node's side takes them at once is due. False: they are too few for the group to begin, and nobody
 * is. Who was not taken at the last look is asked about first: most looks end there. */
static bool begin(struct gang *gang, const struct looking *looking)
{
    uint32_t able = gang_arrived(gang);

    for (int before = 1; before >= 0; before--) {
        for (guint i = 0; i < gang->members->len && able >= gang->min; i++) {
            struct gang_member *member = gang->members->pdata[i];
            if (member == looking->asked || member->stage != ARRIVED || member->behind != before)
                continue;
            ask_about(looking, member);
            able -= member->behind;
        }
    }
    return able >= gang->min;
}

/* From now on it is half until its plugins have served all of it: its deadline begins anew. */
static void make_due(struct gangs *gangs, struct gang *gang, int64_t now_ms)
{
    gang->deadline_ms = now_ms + gang->timeout_ms;
    for (guint i = 0; i < gang->members->len; i++) {
        struct gang_member *member = gang->members->pdata[i];
        if (member->stage == ARRIVED && !member->behind)
            gang_set_stage(gangs, member, DUE);
    }
    gangs->news = true; /* their binds wait */
}

enum gang_answer gangs_arrive(struct gangs *gangs, const char *uid, int64_t now_ms,
                              const struct gang_gate *gate)
{
    struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);
    struct gang *gang = member ? member->gang : NULL;

    if (!member || member->stage >= BOUND || (member->stage == KNOWN && gang_is_free(gang)))
        return GANG_NONE;
    if (member->stage == KNOWN)
        return GANG_LOST;
    gang_change(gangs, gang); /* also of one whose place becomes a booking next */
    if (member->stage >= DUE)
        return GANG_YES;
    gang->asked_ms = now_ms;
    const bool new = member->stage != ARRIVED;
    gang_set_stage(gangs, member, ARRIVED);
    if (!gang->whole && gang_arrived(gang) < gang->min)
        return GANG_WAIT;
    if (gang->whole || gang_has_begun(gang)) {
        gang_set_stage(gangs, member, DUE);
        gangs->news |= new; /* there may be enough now */
        return GANG_YES;
    }
    if (gang->came_ms == 0)
        gang->came_ms = now_ms;
    const struct looking looking = {gangs, gate, member, now_ms};
    ask_about(&looking, member);
    if (member->behind || !begin(gang, &looking))
        return GANG_BEHIND;
    make_due(gangs, gang, now_ms);
    return GANG_YES;
}

void gangs_stay(struct gangs *gangs, const char *uid)
{
    struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);

    if (!member || member->stage != DUE)
        return;
    gang_change(gangs, member->gang);
    gang_set_stage(gangs, member, ARRIVED);
    member->behind = true;
}

bool gangs_go_first(const struct gangs *gangs, const char *uid, int64_t now_ms)
{
    const struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);

    return member &&
           (member->stage == DUE || (member->stage == ARRIVED && member->gang->came_ms != 0 &&
                                     now_ms - member->gang->came_ms < GANG_FIRST_MS));
}

void gangs_depart(struct gangs *gangs, const char *uid)
{
    struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);
    if (!member || (member->stage != ARRIVED && member->stage != DUE))
        return;
    gang_change(gangs, member->gang);
    if (member->barred)
        gang_drop(gangs, member);
    else
        gang_set_stage(gangs, member, HELD);
}

void gangs_book(struct gangs *gangs, const char *uid)
{
    struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);
    if (!member || member->stage != DUE)
        return;
    gang_change(gangs, member->gang);
    member->came_with = gangs_came_with(gangs, uid);
    gang_set_stage(gangs, member, BOOKED);
}

void gangs_settle(struct gangs *gangs, const char *uid, bool bound)
{
    struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);
    if (!member || member->stage != BOOKED)
        return;
    gang_change(gangs, member->gang);
    gang_set_stage(gangs, member, bound ? BOUND : KNOWN);
}
