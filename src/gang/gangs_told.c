/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of groups, for people and for a record. */
#include "gang/gangs_state.h"

#include "core/fail.h"

#include <string.h>

#define WALKED_AT_ONCE 32 /* groups */

/* --- for people ------------------------------------------------------------------------------- */

static uint32_t count_behind(const struct gang *gang)
{
    uint32_t n = 0;

    for (guint i = 0; i < gang->members->len && gang->n[ARRIVED] > 0; i++)
        n += ((const struct gang_member *)gang->members->pdata[i])->behind;
    return n;
}

struct gang_row gang_row(const struct gang *gang)
{
    return (struct gang_row){
        .ns = gang->ns,
        .name = gang->name,
        .native = gang->native,
        .min = gang->min,
        .known = gang_able(gang),
        .held = gang_places(gang),
        .bound = gang->n[BOUND],
        .there = gang_there(gang),
        .fit = gang->fit,
        .behind = count_behind(gang),
        .timeout_ms = gang->timeout_ms,
        .deadline_ms = gang->deadline_ms,
        .again_ms = gang->again_ms,
        .whole = gang->whole,
        .half = gang_is_half(gang),
        .says_least = gang->says_least < gang->min ? gang->says_least : 0,
        .room_nodes = gang->room ? g_hash_table_size(gang->room->nodes) : 0,
        .room_until_ms = gang->room ? gang->room->until_ms : 0,
    };
}

bool gangs_tell(const struct gangs *gangs, const char *uid, struct gang_row *ret_row)
{
    const struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);

    if (member)
        *ret_row = gang_row(member->gang);
    return member != NULL;
}

bool gangs_tell_claimed(const struct gangs *gangs, const char *ns,
                        const struct pod_group_claim *claim, struct gang_row *ret_row)
{
    const struct gang *gang = gang_find(gangs, ns, claim->name, claim->native);

    if (gang)
        *ret_row = gang_row(gang);
    return gang != NULL;
}

bool gangs_walk(const struct gangs *gangs, guint *at,
                void (*visit)(const struct gang_row *row, void *data), void *data)
{
    const struct roll_entry *entry;

    for (int i = 0; i < WALKED_AT_ONCE && (entry = roll_walk(&gangs->roll, at)); i++) {
        const struct gang *gang = (const struct gang *)entry;
        const struct gang_row row = gang_row(gang);
        if (gang->members->len > 0)
            visit(&row, data);
    }
    return *at > 0;
}

static const char *first_bound(const struct gang *gang)
{
    for (guint i = 0; i < gang->members->len; i++) {
        const struct gang_member *member = g_ptr_array_index(gang->members, i);
        if (member->stage == BOUND)
            return member->uid;
    }
    return NULL;
}

static bool are_ours(const struct gang *gang)
{
    for (guint i = 0; i < gang->members->len; i++) {
        const struct gang_member *member = g_ptr_array_index(gang->members, i);
        if (member->stage == BOUND && !member->ours)
            return false;
    }
    return true;
}

char **gangs_bound(const struct gangs *gangs, const char *uid)
{
    const struct gang_member *member = g_hash_table_lookup(gangs->by_uid, uid);
    GPtrArray *uids = g_ptr_array_new();

    for (guint i = 0; member && i < member->gang->members->len; i++) {
        const struct gang_member *other = g_ptr_array_index(member->gang->members, i);
        if (other->stage == BOUND)
            g_ptr_array_add(uids, g_strdup(other->uid));
    }
    g_ptr_array_add(uids, NULL);
    return (char **)g_ptr_array_free(uids, FALSE);
}

void gangs_each_half(const struct gangs *gangs, int64_t now_ms,
                     void (*visit)(const struct gang_half *half, void *data), void *data)
{
    for (guint i = 0; i < gangs->halves->len; i++) {
        const struct gang *gang = g_ptr_array_index(gangs->halves, i);
        if (!gang_is_half(gang) || gang_lacks_ended(gang) || gang->half_ms == 0 ||
            now_ms - gang->half_ms <= gang->timeout_ms)
            continue;
        const struct gang_half half = {
            .group = gang_row(gang),
            .uid = first_bound(gang),
            .ours = are_ours(gang),
            .raised_from = gang->raised_from,
            .for_ms = now_ms - gang->half_ms,
        };
        visit(&half, data);
    }
}

/* --- room that is kept --------------------------------------------------------------------- */

bool gangs_kept_on(const struct gangs *gangs, const char *node, const char *uid, int64_t priority,
                   struct gang_row *ret_row)
{
    for (guint i = 0; i < gangs->rooms->len; i++) {
        const struct gang *gang = gangs->rooms->pdata[i];
        if (!gang_room_excludes(gangs, gang, uid, priority) ||
            !g_hash_table_contains(gang->room->nodes, node))
            continue;
        if (ret_row)
            *ret_row = gang_row(gang);
        return true;
    }
    return false;
}

static void copy_pods(struct gangs *gangs, struct gang *gang, const struct gang *from)
{
    for (guint i = 0; i < from->members->len; i++) {
        const struct gang_member *member = from->members->pdata[i];
        if (!g_hash_table_contains(gangs->by_uid, member->uid))
            gang_add(gangs, gang, member->uid);
    }
}

const char *gangs_name(const struct gangs *gangs, const char *uid)
{
    const struct gang_member *member = uid ? g_hash_table_lookup(gangs->by_uid, uid) : NULL;

    return member ? member->gang->name : NULL;
}

void gangs_copy_pods(struct gangs *gangs, const struct gangs *from, const char *ns,
                     const char *name)
{
    for (int native = 0; native < 2; native++) {
        const struct gang *its = gang_find(from, ns, name, native);
        struct gang *gang = its ? gang_find_or_make(gangs, ns, name, native) : NULL;
        if (gang)
            copy_pods(gangs, gang, its);
    }
}

void gangs_copy_rooms(struct gangs *gangs, const struct gangs *from)
{
    for (guint i = 0; i < from->rooms->len; i++) {
        const struct gang *its = from->rooms->pdata[i];
        struct gang *gang = gang_find_or_make(gangs, its->ns, its->name, its->native);
        if (!gang || gang->room)
            continue;
        copy_pods(gangs, gang, its);
        gang_copy_room(gangs, gang, its);
    }
}

/* --- for a record ----------------------------------------------------------------------------- */

struct group_object {
    const char *ns, *name, *pool;
    int64_t min, last_min, says_least, timeout, asked, tried_at, deadline, backoff, again, fit;
    int64_t held_since, came_at, turn;
    bool native, tried, whole, recalled, waiting;
    const cJSON *members;
};
#define GROUP(KIND, member, path) JSON_FIELD_##KIND(struct group_object, member, path, 0)
static const struct json_field group_fields[] = {
    JSON_FIELD_STRING(struct group_object, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct group_object, name, "name", JSON_REQUIRED),
    GROUP(BOOL, native, "native"),
    GROUP(STRING, pool, "pool"),
    GROUP(INT64, min, "min"),
    GROUP(INT64, last_min, "lastMin"),
    GROUP(INT64, says_least, "saysLeast"),
    GROUP(INT64, timeout, "timeout"),
    GROUP(INT64, asked, "asked"),
    GROUP(BOOL, tried, "tried"),
    GROUP(INT64, tried_at, "triedAt"),
    GROUP(INT64, deadline, "deadline"),
    GROUP(INT64, backoff, "backoff"),
    GROUP(INT64, again, "again"),
    GROUP(INT64, fit, "fit"),
    GROUP(BOOL, whole, "whole"),
    GROUP(BOOL, recalled, "recalled"),
    GROUP(INT64, held_since, "heldSince"),
    GROUP(INT64, came_at, "cameAt"),
    GROUP(BOOL, waiting, "waiting"),
    GROUP(INT64, turn, "turn"),
    GROUP(ARRAY, members, "members"),
    JSON_FIELD_END,
};

struct member_object {
    const char *uid, *stage;
    bool listed;
    int64_t unseen, says, says_timeout, came_with;
    const cJSON *place;
};
static const struct json_field member_fields[] = {
    JSON_FIELD_STRING(struct member_object, uid, "uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct member_object, stage, "stage", JSON_REQUIRED),
    JSON_FIELD_BOOL(struct member_object, listed, "listed", 0),
    JSON_FIELD_INT64(struct member_object, unseen, "unseen", 0),
    JSON_FIELD_INT64(struct member_object, says, "says", 0),
    JSON_FIELD_INT64(struct member_object, says_timeout, "saysTimeout", 0),
    JSON_FIELD_INT64(struct member_object, came_with, "cameWith", 0),
    JSON_FIELD_OBJECT(struct member_object, place, "place", 0),
    JSON_FIELD_END,
};

/* Members come in the order in which they had come. */
static bool decode_member(struct gangs *gangs, struct gang *gang, const struct member_object *said,
                          guint at, bool (*hold)(void *data, const char *uid, const cJSON *place),
                          void *data, GError **error)
{
    struct gang_member *member = g_hash_table_lookup(gangs->by_uid, said->uid);
    guint now_at;

    if (!member) /* known by a call alone, or asks for no GPU */
        member = gang_add(gangs, gang, said->uid);
    if (!member || !g_ptr_array_find(gang->members, member, &now_at))
        return true;
    if (now_at != at && at < gang->members->len) {
        gang->members->pdata[now_at] = gang->members->pdata[at];
        gang->members->pdata[at] = member;
    }
    for (int stage = KNOWN; stage < GANG_STAGES; stage++) {
        if (!g_str_equal(said->stage, gang_stage_names[stage]))
            continue;
        if (stage >= HELD && stage <= DUE && !hold(data, said->uid, said->place))
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "field 'place': it cannot be understood");
        gang_set_stage(gangs, member, (enum gang_stage)stage);
        return true;
    }
    return fail_with(error, GPULEDGER_ERROR_INVALID, "field 'stage': there is none of that name");
}

struct rest_object {
    const char *ns;
    int64_t until;
};
static const struct json_field rest_fields[] = {
    JSON_FIELD_STRING(struct rest_object, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_INT64(struct rest_object, until, "until", 0),
    JSON_FIELD_END,
};

/* Of namespaces that have groups. */
static bool decode_rests(struct gangs *gangs, struct json_arena *arena, const cJSON *object,
                         GError **error)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(object, "rests")) {
        struct rest_object said = {0};
        if (!json_decode(arena, item, rest_fields, &said, error))
            return false;
        struct gang_tenant *tenant = g_hash_table_lookup(gangs->tenants, said.ns);
        if (tenant)
            tenant->rested_ms = CLAMP(said.until, 0, G_MAXINT64 / 2);
    }
    return true;
}

static void note_named(struct gangs *gangs, const struct member_object *said, uint32_t generation)
{
    struct gang_member *member = g_hash_table_lookup(gangs->by_uid, said->uid);

    if (!member)
        return;
    member->generation = said->listed ? generation : generation - 1;
    gang_set_unseen(gangs, member, said->unseen);
    member->says = (uint32_t)said->says;
    member->says_timeout_ms = said->says_timeout;
    member->came_with = (uint32_t)said->came_with;
}

bool gangs_decode(struct gangs *gangs, struct json_arena *arena, const cJSON *object,
                  uint32_t generation,
                  bool (*hold)(void *data, const char *uid, const cJSON *place), void *data,
                  GError **error)
{
    const cJSON *item, *each;

    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(object, "groups")) {
        struct group_object said = {0};
        guint at = 0;
        if (!json_decode(arena, item, group_fields, &said, error))
            return false;
        struct gang *gang = gang_find_or_make(gangs, said.ns, said.name, said.native);
        if (!gang)
            continue;
        cJSON_ArrayForEach (each, said.members) {
            struct member_object member = {0};
            if (!json_decode(arena, each, member_fields, &member, error) ||
                !decode_member(gangs, gang, &member, at++, hold, data, error))
                return false;
            note_named(gangs, &member, generation);
        }
        gang->pool = *said.pool ? g_intern_string(said.pool) : NULL;
        gang->min = (uint32_t)said.min;
        gang->last_min = (uint32_t)said.last_min;
        gang->says_least = (uint32_t)said.says_least;
        gang->timeout_ms = said.timeout;
        gang->asked_ms = said.asked;
        gang->tried_ms = said.tried ? said.tried_at : G_MININT64 / 2;
        gang->deadline_ms = said.deadline;
        gang->backoff_ms = said.backoff;
        gang_rest(gangs, gang, said.again);
        gang->fit = (uint32_t)said.fit;
        gang->whole = said.whole;
        gang->recalled = said.recalled;
        gang->held_ms = said.held_since;
        gang->came_ms = said.came_at;
        gang_set_waiting(gangs, gang, said.waiting);
        gang->turn_ms = said.turn;
        if (!gang_decode_room(gangs, gang, arena, item, error))
            return false;
        gang_note_half(gangs, gang);
    }
    gangs->news = false;
    if (!decode_rests(gangs, arena, object, error) ||
        !gangs_decode_room_rests(gangs, arena, object, error))
        return false;
    GHashTableIter tenants;
    void *tenant;
    g_hash_table_iter_init(&tenants, gangs->tenants);
    while (g_hash_table_iter_next(&tenants, NULL, &tenant))
        gang_recall_slow(gangs, tenant);
    return true;
}
