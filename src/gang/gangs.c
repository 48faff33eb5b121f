/* SPDX-License-Identifier: Apache-2.0 */
#include "gang/gangs_state.h"

#include <string.h>

static void member_free(void *data)
{
    struct gang_member *member = data;
    g_free(member->uid);
    g_free(member);
}

static void gang_free(void *data)
{
    struct gang *gang = data;
    g_free(gang->key);
    g_free(gang->ns);
    g_free(gang->name);
    g_free(gang->failure);
    gang_room_unref(gang->room);
    g_ptr_array_unref(gang->members);
    g_free(gang);
}

static void tenant_free(void *data)
{
    struct gang_tenant *tenant = data;
    g_free(tenant->ns);
    g_free(tenant);
}

struct gangs *gangs_new(const struct gang_keeper *keeper)
{
    struct gangs *gangs = g_new0(struct gangs, 1);
    gangs->keeper = *keeper;
    gangs->by_key = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, gang_free);
    gangs->by_uid = g_hash_table_new(g_str_hash, g_str_equal);
    gangs->tenants = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, tenant_free);
    roll_init(&gangs->roll);
    roll_init(&gangs->tenant_roll);
    gangs->holding = g_ptr_array_new();
    gangs->resting = g_ptr_array_new();
    gangs->unseen = g_ptr_array_new();
    gangs->halves = g_ptr_array_new();
    gangs->wanting = g_ptr_array_new();
    gangs->rooms = g_ptr_array_new();
    gangs->touched = g_ptr_array_new();
    gangs->waiting = g_ptr_array_new();
    gangs->rests = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    return gangs;
}

void gangs_free(struct gangs *gangs)
{
    g_ptr_array_unref(gangs->holding);
    g_ptr_array_unref(gangs->resting);
    g_ptr_array_unref(gangs->unseen);
    g_ptr_array_unref(gangs->halves);
    g_ptr_array_unref(gangs->wanting);
    g_ptr_array_unref(gangs->rooms);
    g_ptr_array_unref(gangs->touched);
    g_ptr_array_unref(gangs->waiting);
    g_hash_table_unref(gangs->rests);
    g_hash_table_unref(gangs->by_uid);
    g_hash_table_unref(gangs->by_key);
    g_hash_table_unref(gangs->tenants);
    roll_clear(&gangs->roll);
    roll_clear(&gangs->tenant_roll);
    g_free(gangs);
}

/* --- groups and members ----------------------------------------------------------------------- */

void gang_set_stage(struct gangs *gangs, struct gang_member *member, enum gang_stage stage)
{
    struct gang *gang = member->gang;
    const uint32_t before = gang_places(gang);
    struct gang_tenant *tenant = gang_tenant_of(gangs, gang->ns);

    tenant->n_places -= gang_has_place(member->stage);
    gang->n[member->stage]--;
    gang->n_barred -= member->barred && member->stage == KNOWN;
    member->stage = stage;
    gang->n[stage]++;
    gang->n_barred += member->barred && stage == KNOWN;
    member->behind &= stage == ARRIVED;
    tenant->n_places += gang_has_place(stage);
    if (before == 0 && gang_places(gang) > 0)
        g_ptr_array_add(gangs->holding, gang);
    if (before > 0 && gang_places(gang) == 0) {
        g_ptr_array_remove_fast(gangs->holding, gang);
        gang->deadline_ms = gang->came_ms = 0;
        gangs->news = true;
        gang_end_turn(gangs, gang);
    }
    if (stage == BOUND || stage == PLAIN)
        gang_note_whole(gangs, gang);
    gang_note_half(gangs, gang);
}

void gang_drop(struct gangs *gangs, struct gang_member *member)
{
    if (member->stage >= HELD && member->stage <= DUE)
        gangs->keeper.drop(gangs->keeper.data, member->uid);
    gang_set_stage(gangs, member, KNOWN);
}

bool gang_release(struct gangs *gangs, struct gang *gang)
{
    bool any = false;

    for (guint i = 0; i < gang->members->len; i++) {
        struct gang_member *member = g_ptr_array_index(gang->members, i);
        if (member->stage == HELD || member->stage == ARRIVED) {
            gang_drop(gangs, member);
            any = true;
        }
    }
    gang->deadline_ms = 0;
    return any;
}

bool gang_is_free(const struct gang *gang)
{
    return gang->whole || gang->min == 1 ||
           (gang->n[BOUND] > 0 && gang_lacks_ended(gang) && gang_places(gang) == 0);
}

struct gang *gang_find(const struct gangs *gangs, const char *ns, const char *name, bool native)
{
    g_autofree char *key = g_strdup_printf("%s/%s%s", ns, native ? "native/" : "", name);
    return g_hash_table_lookup(gangs->by_key, key);
}

struct gang *gang_find_or_make(struct gangs *gangs, const char *ns, const char *name, bool native)
{
    struct gang *gang = gang_find(gangs, ns, name, native);
    struct gang_tenant *tenant = gang_tenant_of(gangs, ns);

    if (gang)
        return gang;
    if (tenant && tenant->n_gangs >= GANGS_NAMESPACE_MAX)
        return NULL;
    if (!tenant) {
        tenant = g_new0(struct gang_tenant, 1);
        tenant->ns = g_strdup(ns);
        g_hash_table_insert(gangs->tenants, tenant->ns, tenant);
        roll_add(&gangs->tenant_roll, &tenant->entry);
        gang_recall_slow(gangs, tenant);
    }
    tenant->n_gangs++;
    gang = g_new0(struct gang, 1);
    gang->tenant = tenant;
    gang->key = g_strdup_printf("%s/%s%s", ns, native ? "native/" : "", name);
    gang->ns = g_strdup(ns);
    gang->name = g_strdup(name);
    gang->native = native;
    gang->members = g_ptr_array_new_with_free_func(member_free);
    gang->tried_ms = G_MININT64 / 2;
    g_hash_table_insert(gangs->by_key, gang->key, gang);
    roll_add(&gangs->roll, &gang->entry);
    return gang;
}

static void remove_if_empty(struct gangs *gangs, struct gang *gang)
{
    struct gang_tenant *tenant = gang_tenant_of(gangs, gang->ns);

    if (gang->declared || gang->members->len > 0)
        return;
    if (--tenant->n_gangs == 0) {
        roll_remove(&gangs->tenant_roll, &tenant->entry);
        g_hash_table_remove(gangs->tenants, gang->ns);
    }
    g_ptr_array_remove_fast(gangs->resting, gang);
    if (gang->touched)
        g_ptr_array_remove_fast(gangs->touched, gang);
    roll_remove(&gangs->roll, &gang->entry);
    g_hash_table_remove(gangs->by_key, gang->key);
}

bool gangs_declare(struct gangs *gangs, const struct pod_group_view *group, uint32_t generation)
{
    struct gang *gang = gang_find_or_make(gangs, group->ns, group->name, group->native);

    if (!gang)
        return false;
    gang_change(gangs, gang);
    gang->declared = true;
    gang->says_least = 0;
    gang->generation = generation;
    gang->timeout_ms = group->timeout_ms;
    gang_set_min(gangs, gang, group->min);
    if (group->failure && g_strcmp0(group->failure, gang->failure) != 0 && !gang->whole)
        gang_release(gangs, gang);
    g_free(gang->failure);
    gang->failure = g_strdup(group->failure);
    return true;
}

static void undeclare(struct gangs *gangs, struct gang *gang)
{
    gang_change(gangs, gang);
    gang->declared = false;
    gang->min = 0;
    gang_want_nothing(gangs, gang, GANG_ROOM_LEFT);
    gang_heed_pods(gangs, gang); /* they may say it */
    gang_note_half(gangs, gang);
    if (!gang->whole)
        gang_release(gangs, gang);
    remove_if_empty(gangs, gang);
}

void gangs_undeclare(struct gangs *gangs, const char *ns, const char *name, bool native)
{
    struct gang *gang = gang_find(gangs, ns, name, native);

    if (gang && gang->declared)
        undeclare(gangs, gang);
}

void gangs_sweep(struct gangs *gangs, bool native, uint32_t generation)
{
    g_autoptr(GPtrArray) stale = g_ptr_array_new();
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, gangs->by_key);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct gang *gang = value;
        if (gang->declared && gang->native == native && gang->generation != generation)
            g_ptr_array_add(stale, gang);
    }
    for (guint i = 0; i < stale->len; i++)
        undeclare(gangs, stale->pdata[i]);
}

static void heed_claim(struct gangs *gangs, struct gang_member *member,
                       const struct pod_group_claim *claim)
{
    if (member->says == claim->min && member->says_timeout_ms == claim->timeout_ms)
        return;
    member->says = claim->min;
    member->says_timeout_ms = claim->timeout_ms;
    gang_heed_pods(gangs, member->gang);
}

struct gang_member *gang_add(struct gangs *gangs, struct gang *gang, const char *uid)
{
    struct gang_member *member;

    if (gang->members->len >= GANG_MEMBERS_MAX)
        return NULL;
    member = g_new0(struct gang_member, 1);
    member->uid = g_strdup(uid);
    member->gang = gang;
    g_ptr_array_add(gang->members, member);
    g_hash_table_insert(gangs->by_uid, member->uid, member);
    gang->n[KNOWN]++;
    gangs->news |= gang_able(gang) == gang->min;
    return member;
}

void gang_set_unseen(struct gangs *gangs, struct gang_member *member, int64_t unseen_ms)
{
    if (member->unseen_ms == 0 && unseen_ms != 0)
        g_ptr_array_add(gangs->unseen, member);
    if (member->unseen_ms != 0 && unseen_ms == 0)
        g_ptr_array_remove_fast(gangs->unseen, member);
    member->unseen_ms = unseen_ms;
}

static void note_source(struct gangs *gangs, struct gang_member *member, bool new,
                        const struct gang_source *source)
{
    if (source->asked_ms == 0) {
        member->generation = source->generation;
        gang_set_unseen(gangs, member, 0);
    } else if (new || member->unseen_ms != 0) {
        gang_set_unseen(gangs, member, source->asked_ms);
    }
}

/* It has fewer members than it needs. */
static void note_few(struct gangs *gangs, struct gang *gang)
{
    if (gang_able(gang) >= MAX(gang->min, 1))
        return;
    gang_want_nothing(gangs, gang, GANG_ROOM_LEFT);
    gang_set_waiting(gangs, gang, false);
}

/* Whose Binding is due, or further, keeps its place. */
static void set_barred(struct gangs *gangs, struct gang_member *member, bool barred)
{
    struct gang *gang = member->gang;

    if (member->barred == barred)
        return;
    if (barred && (member->stage == HELD || member->stage == ARRIVED))
        gang_drop(gangs, member);
    gang->n_barred -= member->barred && member->stage == KNOWN;
    member->barred = barred;
    gang->n_barred += barred && member->stage == KNOWN;
    if (barred)
        note_few(gangs, gang);
    else
        gangs->news |= gang_able(gang) == gang->min;
}

bool gangs_join(struct gangs *gangs, const char *ns, const struct pod_group_claim *claim,
                const char *uid, enum gang_role role, const struct gang_source *source)
{
    static const enum gang_stage stages[] = {[GANG_PENDING] = KNOWN,
                                             [GANG_BARRED] = KNOWN,
                                             [GANG_BOUND] = BOUND,
                                             [GANG_BOOKED] = BOOKED,
                                             [GANG_PLAIN] = PLAIN};
    const enum gang_stage stage = stages[role];
    struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);
    struct gang *gang = gang_find_or_make(gangs, ns, claim->name, claim->native);

    if (member && member->gang != gang) { /* labels can be edited */
        gangs_forget(gangs, uid);
        member = NULL;
    }
    if (!gang)
        return false;
    gang_change(gangs, gang);
    const bool new = !member;
    member = member ? member : gang_add(gangs, gang, uid);
    if (!member) {
        remove_if_empty(gangs, gang);
        return false;
    }
    set_barred(gangs, member, role == GANG_BARRED);
    note_source(gangs, member, new, source);
    heed_claim(gangs, member, claim);
    member->ours |= stage == BOUND && claim->bound_with;
    const bool recalls = stage == BOUND && claim->came_with > 0 && member->came_with == 0;
    if (recalls)
        member->came_with = claim->came_with;
    if (stage != KNOWN && member->stage != stage) {
        gang_drop(gangs, member);
        gang_set_stage(gangs, member, stage);
    }
    if (recalls)
        gang_recall(gangs, gang);
    return true;
}

bool gangs_forget(struct gangs *gangs, const char *uid)
{
    struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);
    struct gang *gang;

    if (!member)
        return false;
    gang = member->gang;
    gang_change(gangs, gang);
    const uint32_t said = member->says;
    gang_set_unseen(gangs, member, 0);
    gang_drop(gangs, member);
    gang->n[KNOWN]--;
    gang->n_barred -= member->barred;
    g_hash_table_remove(gangs->by_uid, uid);
    g_ptr_array_remove(gang->members, member);
    note_few(gangs, gang);
    if (said > 0 && (said == gang->min || said == gang->says_least))
        gang_heed_pods(gangs, gang);
    if (gang->members->len == 0) { /* the next pods of its object begin anew */
        gang->whole = gang->recalled = false;
        gang->raised_from = gang->last_min = 0;
        gang->backoff_ms = 0;
        gang_rest(gangs, gang, 0);
    }
    remove_if_empty(gangs, gang);
    return true;
}

void gangs_sweep_pods(struct gangs *gangs, uint32_t generation)
{
    g_autoptr(GPtrArray) stale = g_ptr_array_new_with_free_func(g_free);
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, gangs->by_uid);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct gang_member *member = value;
        if (member->unseen_ms == 0 && member->generation != generation)
            g_ptr_array_add(stale, g_strdup(member->uid));
    }
    for (guint i = 0; i < stale->len; i++)
        gangs_forget(gangs, stale->pdata[i]);
}

/* --- time ------------------------------------------------------------------------------------- */

bool gangs_expire(struct gangs *gangs, int64_t now_ms)
{
    bool any = gangs_end_rests(gangs, now_ms);

    any |= gangs_expire_turns(gangs, now_ms);
    any |= gangs_expire_rooms(gangs, now_ms);
    gangs_time_halves(gangs, now_ms);
    for (guint i = gangs->unseen->len; i > 0; i--) {
        const struct gang_member *member = g_ptr_array_index(gangs->unseen, i - 1);
        if (now_ms - member->unseen_ms >= GANG_UNSEEN_MS)
            any |= gangs_forget(gangs, member->uid);
    }

    if (gangs->holding->len == 0)
        return any;
    g_autoptr(GPtrArray) holding = g_ptr_array_copy(gangs->holding, NULL, NULL);
    for (guint i = 0; i < holding->len; i++) {
        struct gang *gang = g_ptr_array_index(holding, i);
        const bool late = gang->deadline_ms != 0 && now_ms >= gang->deadline_ms;
        if (!late && now_ms - gang->asked_ms < GANG_ASKED_MS)
            continue;
        gang_change(gangs, gang);
        if (!gang_release(gangs, gang))
            continue;
        any = true;
        if (late && !gang->whole)
            gang_back_off(gangs, gang, now_ms);
    }
    return any;
}

bool gangs_take_news(struct gangs *gangs)
{
    const bool news = gangs->news;
    gangs->news = false;
    return news;
}
