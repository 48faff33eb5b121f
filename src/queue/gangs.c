/* SPDX-License-Identifier: Apache-2.0 */
#include "queue/gangs.h"

#include <string.h>

enum stage { KNOWN, HELD, ARRIVED, DUE, BOUND };

struct gang {
    char *key, *ns, *name, *pool;
    uint32_t min, fit;
    int64_t timeout_ms, asked_ms, deadline_ms, backoff_ms, again_ms;
    bool failed, whole;
    GPtrArray *members; /* in the order in which they came */
};

struct member {
    char *uid, *node;
    enum stage stage;
    struct gang *gang;
};

struct gangs {
    GHashTable *by_key, *by_uid;
};

static void member_free(void *data)
{
    struct member *member = data;
    g_free(member->uid);
    g_free(member->node);
    g_free(member);
}

static void gang_free(void *data)
{
    struct gang *gang = data;
    g_free(gang->key);
    g_free(gang->ns);
    g_free(gang->name);
    g_free(gang->pool);
    g_ptr_array_unref(gang->members);
    g_free(gang);
}

struct gangs *gangs_new(void)
{
    struct gangs *gangs = g_new0(struct gangs, 1);
    gangs->by_key = g_hash_table_new_full(g_str_hash, g_str_equal, NULL, gang_free);
    gangs->by_uid = g_hash_table_new(g_str_hash, g_str_equal);
    return gangs;
}

void gangs_free(struct gangs *gangs)
{
    g_hash_table_unref(gangs->by_uid);
    g_hash_table_unref(gangs->by_key);
    g_free(gangs);
}

static uint32_t count(const struct gang *gang, enum stage from, enum stage to)
{
    uint32_t n = 0;
    for (guint i = 0; i < gang->members->len; i++) {
        const struct member *member = g_ptr_array_index(gang->members, i);
        n += member->stage >= from && member->stage <= to;
    }
    return n;
}

static void drop(struct member *member)
{
    g_clear_pointer(&member->node, g_free);
    member->stage = KNOWN;
}

/* Bindings that are due are not taken back: they may be on their way. */
static bool release(struct gang *gang)
{
    bool any = false;
    for (guint i = 0; i < gang->members->len; i++) {
        struct member *member = g_ptr_array_index(gang->members, i);
        if (member->stage == HELD || member->stage == ARRIVED) {
            drop(member);
            any = true;
        }
    }
    gang->deadline_ms = 0;
    return any;
}

static void back_off(struct gang *gang, int64_t now_ms)
{
    gang->backoff_ms = CLAMP(gang->backoff_ms * 2, GANG_BACKOFF_MIN_MS, GANG_BACKOFF_MAX_MS);
    gang->again_ms = now_ms + gang->backoff_ms;
}

static void note_whole(struct gang *gang)
{
    if (count(gang, BOUND, BOUND) < gang->min)
        return;
    gang->whole = true;
    gang->backoff_ms = gang->again_ms = 0;
}

static uint32_t gangs_of(const struct gangs *gangs, const char *ns, uint32_t *ret_places)
{
    GHashTableIter iter;
    void *value;
    uint32_t n = 0;

    *ret_places = 0;
    g_hash_table_iter_init(&iter, gangs->by_key);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct gang *gang = value;
        if (strcmp(gang->ns, ns) != 0)
            continue;
        n++;
        *ret_places += count(gang, HELD, DUE);
    }
    return n;
}

static struct gang *find(const struct gangs *gangs, const char *ns, const char *name)
{
    g_autofree char *key = g_strdup_printf("%s/%s", ns, name);
    return g_hash_table_lookup(gangs->by_key, key);
}

bool gangs_declare(struct gangs *gangs, const struct gang_terms *terms, int64_t now_ms)
{
    struct gang *gang = find(gangs, terms->ns, terms->name);
    uint32_t places;

    if (!gang) {
        if (gangs_of(gangs, terms->ns, &places) >= GANGS_NAMESPACE_MAX)
            return false;
        gang = g_new0(struct gang, 1);
        gang->key = g_strdup_printf("%s/%s", terms->ns, terms->name);
        gang->ns = g_strdup(terms->ns);
        gang->name = g_strdup(terms->name);
        gang->members = g_ptr_array_new_with_free_func(member_free);
        g_hash_table_insert(gangs->by_key, gang->key, gang);
    }
    g_free(gang->pool);
    gang->pool = g_strdup(terms->pool);
    gang->min = terms->min;
    gang->timeout_ms = terms->timeout_ms;
    if (terms->failed && !gang->failed && release(gang))
        back_off(gang, now_ms);
    gang->failed = terms->failed;
    note_whole(gang);
    return true;
}

bool gangs_join(struct gangs *gangs, const char *ns, const char *name, const char *uid, bool bound)
{
    struct gang *gang = find(gangs, ns, name);
    struct member *member = g_hash_table_lookup(gangs->by_uid, uid);

    if (!gang || (member && member->gang != gang))
        return false;
    if (!member) {
        if (gang->members->len >= GANG_MEMBERS_MAX)
            return false;
        member = g_new0(struct member, 1);
        member->uid = g_strdup(uid);
        member->gang = gang;
        g_ptr_array_add(gang->members, member);
        g_hash_table_insert(gangs->by_uid, member->uid, member);
    }
    if (bound && member->stage != BOUND) {
        drop(member);
        member->stage = BOUND;
        note_whole(gang);
    }
    return true;
}

void gangs_forget(struct gangs *gangs, const char *uid)
{
    struct member *member = g_hash_table_lookup(gangs->by_uid, uid);
    struct gang *gang;

    if (!member)
        return;
    gang = member->gang;
    g_hash_table_remove(gangs->by_uid, uid);
    g_ptr_array_remove(gang->members, member);
    if (gang->members->len == 0)
        g_hash_table_remove(gangs->by_key, gang->key);
}

static bool is_busy(const struct gangs *gangs, const struct gang *asking)
{
    GHashTableIter iter;
    void *value;

    g_hash_table_iter_init(&iter, gangs->by_key);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        const struct gang *gang = value;
        if (gang != asking && !gang->whole && strcmp(gang->pool, asking->pool) == 0 &&
            count(gang, HELD, DUE) > 0)
            return true;
    }
    return false;
}

/* Places for all who have none; those who have one keep it. */
static enum gang_answer hold(struct gang *gang, const struct gang_placer *placer, int64_t now_ms)
{
    g_autoptr(GPtrArray) without = g_ptr_array_new();
    g_autofree const char **uids = g_new0(const char *, gang->members->len);
    g_autofree char **nodes = g_new0(char *, gang->members->len);
    uint32_t fit = count(gang, HELD, BOUND);
    bool enough;

    for (guint i = 0; i < gang->members->len; i++) {
        struct member *member = g_ptr_array_index(gang->members, i);
        if (member->stage != KNOWN)
            continue;
        uids[without->len] = member->uid;
        g_ptr_array_add(without, member);
    }
    placer->place(placer->data, uids, without->len, nodes);
    for (guint i = 0; i < without->len; i++)
        fit += nodes[i] != NULL;
    gang->fit = fit;
    enough = gang->whole || fit >= gang->min;
    for (guint i = 0; i < without->len; i++) {
        struct member *member = g_ptr_array_index(without, i);
        if (!enough) {
            g_free(nodes[i]);
        } else if (nodes[i]) {
            member->node = nodes[i];
            member->stage = HELD;
        }
    }
    if (!enough) {
        release(gang);
        return GANG_NO_ROOM;
    }
    if (gang->deadline_ms == 0 && count(gang, HELD, ARRIVED) > 0)
        gang->deadline_ms = now_ms + gang->timeout_ms;
    return GANG_YES;
}

/* Why nothing can be held for the group now, or GANG_YES. */
static enum gang_answer judge(const struct gangs *gangs, const struct gang *gang, int64_t now_ms)
{
    uint32_t places;

    if (gang->failed || now_ms < gang->again_ms)
        return GANG_BACKOFF;
    if (!gang->whole && gang->members->len < gang->min)
        return GANG_FEW;
    if (!gang->whole && is_busy(gangs, gang))
        return GANG_BUSY;
    gangs_of(gangs, gang->ns, &places);
    return places + count(gang, KNOWN, KNOWN) > GANGS_PLACES_MAX ? GANG_CAPPED : GANG_YES;
}

enum gang_answer gangs_ask(struct gangs *gangs, const char *uid, const struct gang_placer *placer,
                           int64_t now_ms)
{
    struct member *member = g_hash_table_lookup(gangs->by_uid, uid);
    enum gang_answer answer;
    struct gang *gang;

    if (!member)
        return GANG_NONE;
    gang = member->gang;
    gangs_expire(gangs, now_ms);
    answer = judge(gangs, gang, now_ms);
    if (answer != GANG_YES) {
        if (!gang->whole)
            release(gang); /* a member went: what is left of the places is no group */
        return answer;
    }
    gang->asked_ms = now_ms;
    answer = hold(gang, placer, now_ms);
    return answer == GANG_YES && !member->node && member->stage != BOUND ? GANG_NO_ROOM : answer;
}

enum gang_answer gangs_arrive(struct gangs *gangs, const char *uid, int64_t now_ms)
{
    struct member *member = g_hash_table_lookup(gangs->by_uid, uid);
    struct gang *gang;

    if (!member)
        return GANG_NONE;
    gang = member->gang;
    gangs_expire(gangs, now_ms);
    if (member->stage == KNOWN)
        return GANG_LOST;
    if (member->stage >= DUE)
        return GANG_YES;
    gang->asked_ms = now_ms;
    member->stage = ARRIVED;
    if (!gang->whole && count(gang, ARRIVED, BOUND) < gang->min)
        return GANG_WAIT;
    for (guint i = 0; i < gang->members->len; i++) {
        struct member *other = g_ptr_array_index(gang->members, i);
        if (other->stage == ARRIVED)
            other->stage = DUE;
    }
    return GANG_YES;
}

void gangs_depart(struct gangs *gangs, const char *uid)
{
    struct member *member = g_hash_table_lookup(gangs->by_uid, uid);
    if (member && member->stage == ARRIVED)
        member->stage = HELD;
}

void gangs_settle(struct gangs *gangs, const char *uid, bool bound)
{
    struct member *member = g_hash_table_lookup(gangs->by_uid, uid);
    if (!member || member->stage != DUE)
        return;
    drop(member);
    if (bound)
        member->stage = BOUND;
    note_whole(member->gang);
}

bool gangs_expire(struct gangs *gangs, int64_t now_ms)
{
    GHashTableIter iter;
    bool any = false;
    void *value;

    g_hash_table_iter_init(&iter, gangs->by_key);
    while (g_hash_table_iter_next(&iter, NULL, &value)) {
        struct gang *gang = value;
        const bool late = gang->deadline_ms != 0 && now_ms >= gang->deadline_ms;
        if (late && !gang->whole && count(gang, HELD, ARRIVED) > 0)
            back_off(gang, now_ms);
        if (late || now_ms - gang->asked_ms >= GANG_ASKED_MS)
            any |= release(gang);
    }
    return any;
}

const char *gangs_place(const struct gangs *gangs, const char *uid)
{
    const struct member *member = g_hash_table_lookup(gangs->by_uid, uid);
    return member ? member->node : NULL;
}

bool gangs_tell(const struct gangs *gangs, const char *uid, struct gang_row *ret_row)
{
    const struct member *member = g_hash_table_lookup(gangs->by_uid, uid);
    const struct gang *gang = member ? member->gang : NULL;
    uint32_t bound;

    if (!gang)
        return false;
    bound = count(gang, BOUND, BOUND);
    *ret_row = (struct gang_row){
        .ns = gang->ns,
        .name = gang->name,
        .min = gang->min,
        .known = gang->members->len,
        .held = count(gang, HELD, DUE),
        .bound = bound,
        .fit = gang->fit,
        .deadline_ms = gang->deadline_ms,
        .half = !gang->whole && bound > 0 && bound < gang->min && count(gang, DUE, DUE) == 0,
    };
    return true;
}
