/* SPDX-License-Identifier: Apache-2.0 */
/* Room that is kept for a group that is there and finds none. */
#include "gang/gangs_state.h"

#include "core/fail.h"

#include <string.h>

#define WANTS_MS                                                                                   \
    (6 * 60 * 1000) /* kube-scheduler asks about whom it has refused within five minutes */
#define AGAIN_MIN_MS 60000
#define AGAIN_MAX_MS 3600000
#define NAMESPACE_RESTS 3 /* times as long as it was kept */

static GHashTable *new_names(void)
{
    return g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
}

struct gang_room *gang_room_ref(struct gang_room *room)
{
    return g_atomic_rc_box_acquire(room);
}

static void clear(gpointer data)
{
    g_hash_table_unref(((struct gang_room *)data)->nodes);
}

void gang_room_unref(struct gang_room *room)
{
    if (room)
        g_atomic_rc_box_release_full(room, clear);
}

/* --- rests: of pools and of namespaces ---------------------------------------------------------- */

static char *rest_key(const char *pool, const char *ns)
{
    return g_strdup_printf("%s/%s", pool ? "pool" : "namespace", pool ? pool : ns);
}

static bool rests(const struct gangs *gangs, const char *pool, const char *ns, int64_t now_ms)
{
    g_autofree char *key = rest_key(pool, ns);
    const int64_t *until_ms = g_hash_table_lookup(gangs->rests, key);

    return until_ms && now_ms < *until_ms;
}

static void note_rest(struct gangs *gangs, char *take_key, int64_t until_ms)
{
    g_hash_table_replace(gangs->rests, take_key, g_memdup2(&until_ms, sizeof until_ms));
}

static gboolean is_over(gpointer key, gpointer until_ms, gpointer now_ms)
{
    return *(const int64_t *)now_ms >= *(const int64_t *)until_ms;
}

/* --- wishes ------------------------------------------------------------------------------------- */

static void set_wanting(struct gangs *gangs, struct gang *gang, int64_t since_ms)
{
    if (since_ms != 0 && gang->wanting_ms == 0)
        g_ptr_array_add(gangs->wanting, gang);
    if (since_ms == 0 && gang->wanting_ms != 0)
        g_ptr_array_remove_fast(gangs->wanting, gang);
    gang->wanting_ms = since_ms;
}

/* Some group of the pool has, or one of the namespace. */
static bool has_room(const struct gangs *gangs, const char *pool, const char *ns)
{
    for (guint i = 0; i < gangs->rooms->len; i++) {
        const struct gang *gang = gangs->rooms->pdata[i];
        if (gang->room->pool == pool || g_strcmp0(gang->ns, ns) == 0)
            return true;
    }
    return false;
}

static bool may_have_room(const struct gangs *gangs, const struct gang *gang, int64_t now_ms)
{
    return gang->wanting_ms != 0 && now_ms - gang->wanting_ms >= GANG_ROOM_AFTER_MS &&
           now_ms >= gang->room_again_ms && !rests(gangs, NULL, gang->ns, now_ms) &&
           !has_room(gangs, NULL, gang->ns);
}

/* Who has wanted it for longer, and asks. */
static bool is_somebodys_turn(const struct gangs *gangs, const struct gang *asking, int64_t now_ms)
{
    for (guint i = 0; i < gangs->wanting->len; i++) {
        const struct gang *gang = gangs->wanting->pdata[i];
        if (gang != asking && gang->pool == asking->pool &&
            now_ms - gang->wanted_ms < GANG_ROOM_ASKED_MS &&
            (gang->wanting_ms < asking->wanting_ms ||
             (gang->wanting_ms == asking->wanting_ms && strcmp(gang->key, asking->key) < 0)) &&
            may_have_room(gangs, gang, now_ms))
            return true;
    }
    return false;
}

/* --- room --------------------------------------------------------------------------------------- */

/* For longer each time. */
static void wait_longer(struct gang *gang, int64_t ms, int64_t now_ms)
{
    gang->room_again_ms = now_ms + CLAMP(MAX(ms, AGAIN_MIN_MS) << MIN(gang->vain, 6), AGAIN_MIN_MS,
                                         MAX(ms, AGAIN_MAX_MS));
    gang->vain++;
}

static void set_room(struct gangs *gangs, struct gang *gang, struct gang_room *take_room)
{
    if (gang->room) {
        g_ptr_array_remove_fast(gangs->rooms, gang);
        gang_room_unref(gang->room);
        gangs->news = true; /* others may go there */
    }
    if (take_room)
        g_ptr_array_add(gangs->rooms, gang);
    gang->room = take_room;
}

static void end_room(struct gangs *gangs, struct gang *gang, enum gang_room_end end, int64_t now_ms)
{
    const int64_t kept_ms = MAX(now_ms - gang->room->since_ms, 0);

    gangs->room_ends[end]++;
    note_rest(gangs, rest_key(gang->room->pool, NULL), now_ms + kept_ms);
    note_rest(gangs, rest_key(NULL, gang->ns), now_ms + NAMESPACE_RESTS * kept_ms);
    if (end == GANG_ROOM_OVER || end == GANG_ROOM_LAPSED)
        wait_longer(gang, kept_ms, now_ms);
    set_room(gangs, gang, NULL);
}

void gang_want_nothing(struct gangs *gangs, struct gang *gang, enum gang_room_end end)
{
    set_wanting(gangs, gang, 0);
    if (end == GANG_ROOM_CAME)
        gang->vain = 0;
    if (gang->room)
        end_room(gangs, gang, end, gang->wanted_ms);
}

static GPtrArray *list_without(const struct gang *gang)
{
    GPtrArray *uids = g_ptr_array_new();

    for (guint i = 0; i < gang->members->len; i++) {
        const struct gang_member *member = gang->members->pdata[i];
        if (gang_wants_place(member))
            g_ptr_array_add(uids, member->uid);
    }
    return uids;
}

static uint64_t choose_room(struct gangs *gangs, struct gang *gang, const struct gang_ask *ask)
{
    struct gang_choice choice = {0};
    g_autoptr(GPtrArray) uids = list_without(gang);
    const struct gang_need need = {.uids = (const char *const *)uids->pdata,
                                   .n = uids->len,
                                   .lacks = gang->min - MIN(gang_there(gang), gang->min)};
    const uint64_t work = ask->choose(ask->data, &need, &choice);

    if (!choice.take_nodes) {
        gangs->room_ends[GANG_ROOM_NONE]++;
        wait_longer(gang, 0, ask->now_ms);
        return work;
    }
    struct gang_room *room = g_atomic_rc_box_new0(struct gang_room);
    room->pool = gang->pool;
    room->priority = choice.priority;
    room->since_ms = ask->now_ms;
    room->until_ms = ask->now_ms + gangs->keeper.room_ms;
    room->nodes = new_names();
    for (guint i = 0; i < choice.take_nodes->len; i++)
        g_hash_table_add(room->nodes, g_strdup(choice.take_nodes->pdata[i]));
    g_ptr_array_unref(choice.take_nodes);
    set_room(gangs, gang, room);
    return work;
}

void gang_note_asked(struct gangs *gangs, struct gang *gang, int64_t now_ms)
{
    if (!gang->room && now_ms - gang->wanted_ms > WANTS_MS)
        set_wanting(gangs, gang, 0);
    gang->wanted_ms = now_ms;
}

uint64_t gang_want_room(struct gangs *gangs, struct gang *gang, const struct gang_ask *ask)
{
    const int64_t now_ms = ask->now_ms;

    if (gangs->keeper.room_ms == 0 || !ask->choose)
        return 0;
    if (gang->wanting_ms == 0)
        set_wanting(gangs, gang, MAX(now_ms, 1));
    if (gang->room || !may_have_room(gangs, gang, now_ms) || has_room(gangs, gang->pool, NULL) ||
        rests(gangs, gang->pool, NULL, now_ms) || is_somebodys_turn(gangs, gang, now_ms))
        return 0;
    return choose_room(gangs, gang, ask);
}

bool gangs_expire_rooms(struct gangs *gangs, int64_t now_ms)
{
    bool any = false;

    for (guint i = gangs->rooms->len; i > 0; i--) {
        struct gang *gang = g_ptr_array_index(gangs->rooms, i - 1);
        const bool over = now_ms >= gang->room->until_ms;
        if (!over && now_ms - gang->wanted_ms < GANG_ROOM_ASKED_MS)
            continue;
        gang_change(gangs, gang);
        end_room(gangs, gang, over ? GANG_ROOM_OVER : GANG_ROOM_LAPSED, now_ms);
        any = true;
    }
    g_hash_table_foreach_remove(gangs->rests, is_over, &now_ms);
    return any;
}

/* --- for who looks ------------------------------------------------------------------------------ */

bool gang_room_excludes(const struct gangs *gangs, const struct gang *gang, const char *uid,
                        int64_t priority)
{
    const struct gang_member *member = uid ? g_hash_table_lookup(gangs->by_uid, uid) : NULL;

    return priority <= gang->room->priority && (!member || member->gang != gang);
}

bool gangs_keep_from(const struct gangs *gangs, const char *uid, int64_t priority)
{
    for (guint i = 0; i < gangs->rooms->len; i++) {
        if (gang_room_excludes(gangs, gangs->rooms->pdata[i], uid, priority))
            return true;
    }
    return false;
}

const uint64_t *gangs_room_ends(const struct gangs *gangs)
{
    return gangs->room_ends;
}

void gang_copy_room(struct gangs *gangs, struct gang *gang, const struct gang *from)
{
    gang->pool = from->pool;
    gang->wanted_ms = from->wanted_ms;
    set_room(gangs, gang, gang_room_ref(from->room));
}

/* --- for a record ------------------------------------------------------------------------------- */

void gang_encode_room(struct json_writer *writer, const struct gang *gang)
{
    json_key_int(writer, "wanting", gang->wanting_ms);
    json_key_int(writer, "wanted", gang->wanted_ms);
    json_key_int(writer, "vain", gang->vain);
    json_key_int(writer, "roomAgain", gang->room_again_ms);
    if (!gang->room)
        return;
    g_autoptr(GList) names =
        g_list_sort(g_hash_table_get_keys(gang->room->nodes), (GCompareFunc)strcmp);
    json_key_string(writer, "roomPool", gang->room->pool);
    json_key_int(writer, "roomPriority", gang->room->priority);
    json_key_int(writer, "roomSince", gang->room->since_ms);
    json_key_int(writer, "roomUntil", gang->room->until_ms);
    json_key_array(writer, "roomNodes");
    for (const GList *name = names; name; name = name->next)
        json_string(writer, name->data);
    json_end_array(writer);
}

struct room_object {
    int64_t wanting, wanted, vain, again, priority, since, until;
    const char *pool;
    const cJSON *nodes;
};
#define ROOM(KIND, member, path) JSON_FIELD_##KIND(struct room_object, member, path, 0)
static const struct json_field room_fields[] = {
    ROOM(INT64, wanting, "wanting"),
    ROOM(INT64, wanted, "wanted"),
    ROOM(INT64, vain, "vain"),
    ROOM(INT64, again, "roomAgain"),
    ROOM(INT64, priority, "roomPriority"),
    ROOM(INT64, since, "roomSince"),
    ROOM(INT64, until, "roomUntil"),
    ROOM(STRING, pool, "roomPool"),
    ROOM(ARRAY, nodes, "roomNodes"),
    JSON_FIELD_END,
};

bool gang_decode_room(struct gangs *gangs, struct gang *gang, struct json_arena *arena,
                      const cJSON *object, GError **error)
{
    struct room_object said = {0};
    const cJSON *name;

    if (!json_decode(arena, object, room_fields, &said, error))
        return false;
    set_wanting(gangs, gang, said.wanting);
    gang->wanted_ms = said.wanted;
    gang->vain = (uint32_t)CLAMP(said.vain, 0, G_MAXINT32);
    gang->room_again_ms = said.again;
    set_room(gangs, gang, NULL);
    if (!said.nodes)
        return true;
    struct gang_room *room = g_atomic_rc_box_new0(struct gang_room);
    room->pool = g_intern_string(said.pool ? said.pool : "");
    room->priority = said.priority;
    room->since_ms = said.since;
    room->until_ms = said.until;
    room->nodes = new_names();
    cJSON_ArrayForEach (name, said.nodes) {
        if (cJSON_IsString(name))
            g_hash_table_add(room->nodes, g_strdup(name->valuestring));
    }
    set_room(gangs, gang, room);
    return true;
}

void gangs_encode_room_rests(struct json_writer *writer, GHashTable *rests)
{
    g_autoptr(GList) keys = g_list_sort(g_hash_table_get_keys(rests), (GCompareFunc)strcmp);

    json_key_array(writer, "roomRests");
    for (const GList *key = keys; key; key = key->next) {
        json_begin_object(writer);
        json_key_string(writer, "of", key->data);
        json_key_int(writer, "until", *(const int64_t *)g_hash_table_lookup(rests, key->data));
        json_end_object(writer);
    }
    json_end_array(writer);
}

struct room_rest_object {
    const char *of;
    int64_t until;
};
static const struct json_field room_rest_fields[] = {
    JSON_FIELD_STRING(struct room_rest_object, of, "of", JSON_REQUIRED),
    JSON_FIELD_INT64(struct room_rest_object, until, "until", 0),
    JSON_FIELD_END,
};

bool gangs_decode_room_rests(struct gangs *gangs, struct json_arena *arena, const cJSON *object,
                             GError **error)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, cJSON_GetObjectItemCaseSensitive(object, "roomRests")) {
        struct room_rest_object said = {0};
        if (!json_decode(arena, item, room_rest_fields, &said, error))
            return false;
        note_rest(gangs, g_strdup(said.of), said.until);
    }
    return true;
}
