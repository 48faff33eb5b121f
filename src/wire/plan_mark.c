/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/plan_mark.h"

#include "core/fail.h"
#include "wire/share.h"

#include <gpuledger/dialect.h>
#include <string.h>

/* --- rooms ------------------------------------------------------------------------------------ */

struct kept_room *kept_room_new(void)
{
    return g_new0(struct kept_room, 1);
}

struct kept_room *kept_room_dup(const struct kept_room *room)
{
    struct kept_room *copy = kept_room_new();

    *copy = (struct kept_room){
        .uid = g_strdup(room->uid),
        .group = g_strdup(room->group),
        .ns = g_strdup(room->ns),
        .controller = g_strdup(room->controller),
        .asks = g_strdup(room->asks),
        .held = allocation_dup(room->held),
        .since_s = room->since_s,
        .until_ns = room->until_ns,
        .taken = g_strdup(room->taken),
    };
    return copy;
}

void kept_room_free(struct kept_room *room)
{
    if (!room)
        return;
    g_free(room->uid);
    g_free(room->group);
    g_free(room->ns);
    g_free(room->controller);
    g_free(room->asks);
    g_free(room->taken);
    if (room->held)
        allocation_free(room->held);
    g_free(room);
}

char *kept_room_asks(const struct request *request)
{
    static const char *const kinds[] = {[AMOUNT_BYTES] = "bytes",
                                        [AMOUNT_NODE_UNITS] = "units",
                                        [AMOUNT_THOUSANDTHS] = "thousandths"};
    g_autoptr(GString) text = g_string_new(NULL);

    for (uint32_t i = 0; i < request->n_asks; i++) {
        const struct card_ask *ask = &request->asks[i];
        g_string_append_printf(text, "%s%d x %" G_GINT64_FORMAT " %s", i ? ", " : "", ask->count,
                               ask->memory.value, kinds[ask->memory.kind]);
        if (ask->core > 0)
            g_string_append_printf(text, " %d core", ask->core);
        if (ask->exclusive)
            g_string_append(text, " alone");
        if (ask->device)
            g_string_append_printf(text, " %s", ask->device);
    }
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* --- marks ------------------------------------------------------------------------------------ */

static void free_room(gpointer room)
{
    kept_room_free(room);
}

struct plan_mark *plan_mark_new(void)
{
    struct plan_mark *mark = g_new0(struct plan_mark, 1);

    mark->rooms = g_ptr_array_new_with_free_func(free_room);
    return mark;
}

struct plan_mark *plan_mark_dup(const struct plan_mark *mark)
{
    struct plan_mark *copy = plan_mark_new();

    copy->doing = g_strdup(mark->doing);
    copy->by = g_strdup(mark->by);
    copy->until_ns = mark->until_ns;
    for (guint i = 0; i < mark->rooms->len; i++)
        g_ptr_array_add(copy->rooms, kept_room_dup(mark->rooms->pdata[i]));
    return copy;
}

void plan_mark_free(struct plan_mark *mark)
{
    if (!mark)
        return;
    g_free(mark->doing);
    g_free(mark->by);
    g_ptr_array_unref(mark->rooms);
    g_free(mark);
}

bool plan_mark_lives(const struct plan_mark *mark, int64_t now_ns)
{
    return mark->until_ns > now_ns && mark->until_ns - now_ns <= KEPT_ROOM_MAX_NS;
}

/* --- writing ---------------------------------------------------------------------------------- */

static void write_room(struct json_writer *writer, const struct kept_room *room)
{
    const struct allocation *held = room->held;

    json_begin_object(writer);
    json_key_string(writer, "id", held->uid);
    if (room->uid) {
        json_key_string(writer, "pod", room->uid);
        if (*held->ns)
            json_key_string(writer, "namespace", held->ns);
        if (room->group)
            json_key_string(writer, "group", room->group);
    } else {
        json_key_string(writer, "namespace", room->ns);
        json_key_string(writer, "controller", room->controller);
        json_key_string(writer, "asks", room->asks);
        json_key_int(writer, "since", room->since_s);
    }
    json_key_int(writer, "priority", held->priority);
    if (held->work_class)
        json_key_string(writer, "class", held->work_class->name);
    if (held->oversubscribes)
        json_key_bool(writer, "oversubscribes", true);
    if (held->terms && held->terms->memory_wanted > 0)
        json_key_int(writer, "wanted", held->terms->memory_wanted);
    json_key_string(writer, "dialect", held->dialect->name);
    json_key_int(writer, "cpu", held->host.cpu);
    json_key_int(writer, "memory", held->host.memory);
    json_key_array(writer, "shares");
    for (uint32_t i = 0; i < held->n_shares; i++)
        share_encode(writer, &held->shares[i]);
    json_end_array(writer);
    json_end_object(writer);
}

char *plan_mark_format(const struct plan_mark *mark)
{
    g_autoptr(GDateTime) until = g_date_time_new_from_unix_utc(mark->until_ns / 1000000000);
    g_autofree char *time = g_date_time_format(until, "%Y-%m-%dT%H:%M:%SZ");
    g_autoptr(GString) text = g_string_new(NULL);
    struct json_writer writer;

    json_writer_init(&writer, text);
    json_begin_object(&writer);
    json_key_string(&writer, "doing", mark->doing);
    json_key_string(&writer, "by", mark->by);
    json_key_string(&writer, "until", time);
    json_key_array(&writer, "rooms");
    for (guint i = 0; i < mark->rooms->len; i++)
        write_room(&writer, mark->rooms->pdata[i]);
    json_end_array(&writer);
    json_end_object(&writer);
    return g_string_free(g_steal_pointer(&text), FALSE);
}

/* --- reading ---------------------------------------------------------------------------------- */

struct said {
    const char *doing, *by, *until;
    const cJSON *rooms;
};
static const struct json_field said_fields[] = {
    JSON_FIELD_STRING(struct said, doing, "doing", 0),
    JSON_FIELD_STRING(struct said, by, "by", 0),
    JSON_FIELD_STRING(struct said, until, "until", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct said, rooms, "rooms", 0),
    JSON_FIELD_END,
};

struct said_room {
    const char *id, *pod, *ns, *group, *controller, *asks, *dialect, *work_class;
    int64_t since, priority, cpu, memory, wanted;
    bool oversubscribes;
    const cJSON *shares;
};
static const struct json_field room_fields[] = {
    JSON_FIELD_STRING(struct said_room, id, "id", JSON_REQUIRED),
    JSON_FIELD_STRING(struct said_room, pod, "pod", 0),
    JSON_FIELD_STRING(struct said_room, ns, "namespace", 0),
    JSON_FIELD_STRING(struct said_room, group, "group", 0),
    JSON_FIELD_STRING(struct said_room, controller, "controller", 0),
    JSON_FIELD_STRING(struct said_room, asks, "asks", 0),
    JSON_FIELD_STRING(struct said_room, work_class, "class", 0),
    JSON_FIELD_STRING(struct said_room, dialect, "dialect", JSON_REQUIRED),
    JSON_FIELD_INT64(struct said_room, since, "since", 0),
    JSON_FIELD_INT64(struct said_room, priority, "priority", 0),
    JSON_FIELD_INT64(struct said_room, cpu, "cpu", 0),
    JSON_FIELD_INT64(struct said_room, memory, "memory", 0),
    JSON_FIELD_INT64(struct said_room, wanted, "wanted", 0),
    JSON_FIELD_BOOL(struct said_room, oversubscribes, "oversubscribes", 0),
    JSON_FIELD_ARRAY(struct said_room, shares, "shares", JSON_REQUIRED),
    JSON_FIELD_END,
};

/* The devices' names outlive the document. */
static void keep_devices(struct allocation *held)
{
    g_autoptr(GStrvBuilder) names = g_strv_builder_new();
    guint n = 0;

    for (uint32_t i = 0; i < held->n_shares; i++) {
        if (held->shares[i].device)
            g_strv_builder_add(names, held->shares[i].device);
    }
    g_auto(GStrv) kept = g_strv_builder_end(names);
    if (!*kept)
        return;
    for (uint32_t i = 0; i < held->n_shares; i++) {
        if (held->shares[i].device)
            held->shares[i].device = kept[n++];
    }
    held->terms = terms_new();
    held->terms->devices = g_steal_pointer(&kept);
}

static struct allocation *read_held(struct json_arena *arena, const struct said_room *said,
                                    const struct classes *classes)
{
    const struct dialect *dialect = dialect_find(said->dialect);
    const int n = cJSON_GetArraySize(said->shares);
    const cJSON *item;
    uint32_t i = 0;

    if (!dialect || n < 1 || n > REQUEST_ASKS_MAX || said->cpu < 0 || said->memory < 0)
        return NULL;
    g_autoptr(allocation) held =
        allocation_new(said->id, said->ns ? said->ns : "", said->id, (size_t)n);
    cJSON_ArrayForEach (item, said->shares) {
        if (!share_decode(arena, item, &held->shares[i++]))
            return NULL;
    }
    keep_devices(held);
    if (said->wanted > 0) {
        held->terms = held->terms ? held->terms : terms_new();
        held->terms->memory_wanted = MIN(said->wanted, AMOUNT_BYTES_MAX);
    }
    held->oversubscribes = said->oversubscribes;
    held->dialect = dialect;
    held->work_class =
        said->work_class ? work_class_ref(classes_find(classes, said->work_class)) : NULL;
    held->state = ALLOCATION_ASSUMED;
    held->priority = said->priority;
    held->host =
        (struct host){MIN(said->cpu, HOST_AMOUNT_MAX), MIN(said->memory, HOST_AMOUNT_MAX), 1};
    return g_steal_pointer(&held);
}

static bool read_room(struct json_arena *arena, const cJSON *object, const struct classes *classes,
                      struct plan_mark *mark, GError **error)
{
    struct said_room said = {0};

    if (!json_decode(arena, object, room_fields, &said, error))
        return false;
    struct allocation *held = said.pod || (said.controller && said.ns && said.asks)
                                  ? read_held(arena, &said, classes)
                                  : NULL;
    if (!held)
        return fail_with(error, GPULEDGER_ERROR_INVALID,
                         "a room says for nobody, or nothing, that is known");
    struct kept_room *room = kept_room_new();
    *room = (struct kept_room){
        .uid = g_strdup(said.pod),
        .group = said.pod && said.ns ? g_strdup(said.group) : NULL,
        .ns = g_strdup(said.ns),
        .controller = g_strdup(said.controller),
        .asks = g_strdup(said.asks),
        .held = held,
        .since_s = said.since,
        .until_ns = mark->until_ns,
    };
    g_ptr_array_add(mark->rooms, room);
    return true;
}

static bool read_until(const char *text, int64_t *ret_ns, GError **error)
{
    g_autoptr(GTimeZone) utc = g_time_zone_new_utc();
    g_autoptr(GDateTime) time = g_date_time_new_from_iso8601(text, utc);

    if (!time)
        return fail_with(error, GPULEDGER_ERROR_INVALID, "'until' is no time");
    *ret_ns = CLAMP(g_date_time_to_unix(time), 0, G_MAXINT64 / 1000000000 - 1) * 1000000000;
    return true;
}

struct plan_mark *plan_mark_parse(const char *text, const struct classes *classes, GError **error)
{
    g_autoptr(json_arena) arena = json_arena_new();
    g_autoptr(plan_mark) mark = plan_mark_new();
    const size_t length = strlen(text);
    struct said said = {0};
    const cJSON *item;

    if (length > PLAN_MARK_MAX && !fail_with(error, GPULEDGER_ERROR_INVALID, "it is too long"))
        return NULL;
    const cJSON *object = json_parse(arena, text, length, error);
    if (!object || !json_decode(arena, object, said_fields, &said, error) ||
        !read_until(said.until, &mark->until_ns, error))
        return NULL;
    if (cJSON_GetArraySize(said.rooms) > PLAN_MARK_ROOMS_MAX &&
        !fail_with(error, GPULEDGER_ERROR_INVALID, "it keeps too many rooms"))
        return NULL;
    mark->doing =
        g_utf8_make_valid(said.doing ? said.doing : "",
                          (gssize)strnlen(said.doing ? said.doing : "", PLAN_MARK_DOING_MAX));
    mark->by = g_strdup(said.by ? said.by : "");
    cJSON_ArrayForEach (item, said.rooms) {
        if (!read_room(arena, item, classes, mark, error))
            return NULL;
    }
    return g_steal_pointer(&mark);
}
