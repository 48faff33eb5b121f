/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of rejected pods, for people and for a record. */
#include "queue/mig/failed_places.h"
#include "queue/rejects_state.h"

#include <gpuledger/error.h>
#include <string.h>

#define WALKED_AT_ONCE 16 /* sites */
#define COPIED_AT_ONCE 4

/* --- for people ------------------------------------------------------------------------------- */

static void visit_pauses(const struct site *site, rejects_visit visit, void *data)
{
    for (guint i = 0; i < site->pauses->len; i++) {
        const struct pause *pause = site->pauses->pdata[i];
        visit(&(struct rejects_pause){.node = site->node,
                                      .dialect = site->dialect,
                                      .ns = pause->ns,
                                      .card = pause->card,
                                      .until_ms = pause->until_ms,
                                      .length_ms = pause->length_ms,
                                      .what_if = pause->what_if,
                                      .total = site->total,
                                      .last = site->last},
              data);
    }
    for (guint i = 0; i < site->places->len; i++) {
        const struct failed_place *failed = site->places->pdata[i];
        visit(&(struct rejects_pause){.node = site->node,
                                      .dialect = site->dialect,
                                      .ns = failed->ns,
                                      .card = failed->card,
                                      .place = failed->place,
                                      .until_ms = failed->until_ms,
                                      .length_ms = FAILED_PLACE_MS,
                                      .total = site->total,
                                      .last = site->last},
              data);
    }
}

void rejects_each(const struct rejects *rejects, const char *node, rejects_visit visit, void *data)
{
    for (const struct site *site = g_hash_table_lookup(rejects->nodes, node); site;
         site = site->next)
        visit_pauses(site, visit, data);
}

bool rejects_walk(const struct rejects *rejects, guint *at, rejects_visit visit, void *data)
{
    const struct roll_entry *entry;

    for (int i = 0; i < WALKED_AT_ONCE && (entry = roll_walk(&rejects->roll, at)); i++)
        visit_pauses((const struct site *)entry, visit, data);
    return *at > 0;
}

char *rejects_tell(const struct rejects_pause *pause, int64_t now_ms)
{
    GString *text = g_string_new(NULL);
    const int64_t left_s = (pause->until_ms - now_ms + 999) / 1000;

    if (pause->card != CARD_UNKNOWN)
        g_string_append_printf(text, "card %d ", pause->card);
    if (pause->place.size > 0)
        g_string_append_printf(text, "from slice %d to %d, where no MIG instance could be made, ",
                               pause->place.start, pause->place.start + pause->place.size - 1);
    if (pause->what_if)
        g_string_append(text, "takes one pod at a time, until one is admitted");
    else if (now_ms == 0)
        g_string_append(text, "is left out");
    else
        g_string_append_printf(text, "is left out for %" G_GINT64_FORMAT " s more",
                               MAX(left_s, 1));
    if (pause->ns)
        g_string_append_printf(text, ", for pods of namespace %s", pause->ns);
    return g_string_free(text, FALSE);
}

/* --- copies ----------------------------------------------------------------------------------- */

static void copy_pause(struct site *site, const struct pause *from)
{
    struct pause *pause = pause_new(from->ns, from->card, from->until_ms, from->length_ms);
    GHashTableIter iter;
    gpointer uid;

    pause->what_if = from->what_if;
    pause->tried_ms = from->tried_ms;
    pause->author = g_strdup(from->author);
    g_hash_table_iter_init(&iter, from->former);
    while (g_hash_table_iter_next(&iter, &uid, NULL))
        g_hash_table_add(pause->former, g_strdup(uid));
    g_ptr_array_add(site->pauses, pause);
}

/* One that is there already is as the other is now. */
static void copy_site(const struct roll_entry *entry, void *data)
{
    const struct site *known = (const struct site *)entry;
    struct site *site = rejects_site(data, known->node, known->dialect);

    site->total = known->total;
    site->last = known->last;
    g_ptr_array_set_size(site->recent, 0);
    g_ptr_array_set_size(site->pauses, 0);
    for (guint i = 0; i < known->recent->len; i++) {
        const struct reject *reject = known->recent->pdata[i];
        g_ptr_array_add(site->recent,
                        reject_new(reject->uid, reject->ns, reject->card, reject->since_ms));
    }
    for (guint i = 0; i < known->pauses->len; i++)
        copy_pause(site, known->pauses->pdata[i]);
    failed_places_copy(site->places, known->places);
}

bool rejects_copy(struct rejects *rejects, const struct rejects *from, guint *at)
{
    const struct roll_entry *entry;

    for (int i = 0; i < COPIED_AT_ONCE && (entry = roll_walk(&from->roll, at)); i++)
        copy_site(entry, rejects);
    return *at > 0;
}

void rejects_image_begin(struct rejects *image, struct rejects *rejects)
{
    roll_begin_image(&rejects->roll, copy_site, image);
}

bool rejects_image_take(struct rejects *rejects)
{
    return roll_take(&rejects->roll, COPIED_AT_ONCE);
}

/* --- for a record ----------------------------------------------------------------------------- */

static void write_reject(struct json_writer *writer, const struct reject *reject)
{
    json_begin_object(writer);
    json_key_string(writer, "uid", reject->uid);
    json_key_string(writer, "namespace", reject->ns);
    json_key_int(writer, "card", reject->card);
    json_key_int(writer, "since", reject->since_ms);
    json_end_object(writer);
}

static void write_pause(struct json_writer *writer, const struct pause *pause)
{
    GHashTableIter iter;
    gpointer uid;

    json_begin_object(writer);
    if (pause->ns)
        json_key_string(writer, "namespace", pause->ns);
    json_key_int(writer, "card", pause->card);
    json_key_int(writer, "until", pause->until_ms);
    json_key_int(writer, "length", pause->length_ms);
    json_key_bool(writer, "trial", pause->what_if);
    json_key_int(writer, "tried", pause->tried_ms);
    json_key_string(writer, "author", pause->author);
    json_key_array(writer, "former");
    g_hash_table_iter_init(&iter, pause->former);
    while (g_hash_table_iter_next(&iter, &uid, NULL))
        json_string(writer, uid);
    json_end_array(writer);
    json_end_object(writer);
}

static void write_site(struct json_writer *writer, const struct site *site)
{
    json_begin_object(writer);
    json_key_string(writer, "node", site->node);
    json_key_string(writer, "dialect", site->dialect->name);
    json_key_int(writer, "total", (int64_t)site->total);
    json_key_int(writer, "last", site->last);
    json_key_array(writer, "rejects");
    for (guint i = 0; i < site->recent->len; i++)
        write_reject(writer, site->recent->pdata[i]);
    json_end_array(writer);
    json_key_array(writer, "pauses");
    for (guint i = 0; i < site->pauses->len; i++)
        write_pause(writer, site->pauses->pdata[i]);
    json_end_array(writer);
    if (site->places->len > 0) {
        json_key(writer, "places");
        failed_places_encode(writer, site->places);
    }
    json_end_object(writer);
}

static gint compare_sites(gconstpointer a, gconstpointer b)
{
    const struct site *left = *(const struct site *const *)a;
    const struct site *right = *(const struct site *const *)b;
    const int order = strcmp(left->node, right->node);

    return order ? order : strcmp(left->dialect->name, right->dialect->name);
}

void rejects_encode(struct json_writer *writer, const struct rejects *rejects)
{
    g_autoptr(GPtrArray) sites = g_ptr_array_copy(rejects->roll.entries, NULL, NULL);

    g_ptr_array_sort(sites, compare_sites);
    json_begin_object(writer);
    json_key_array(writer, "sites");
    for (guint i = 0; i < sites->len; i++)
        write_site(writer, sites->pdata[i]);
    json_end_array(writer);
    json_end_object(writer);
}

struct reject_object {
    const char *uid, *ns;
    int64_t card, since;
};

static const struct json_field reject_fields[] = {
    JSON_FIELD_STRING(struct reject_object, uid, "uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct reject_object, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_INT64(struct reject_object, card, "card", JSON_REQUIRED),
    JSON_FIELD_INT64(struct reject_object, since, "since", 0),
    JSON_FIELD_END,
};

struct pause_object {
    const char *ns, *author;
    int64_t card, until, length, tried;
    bool what_if;
    const cJSON *former;
};

static const struct json_field pause_fields[] = {
    JSON_FIELD_STRING(struct pause_object, ns, "namespace", 0),
    JSON_FIELD_STRING(struct pause_object, author, "author", 0),
    JSON_FIELD_INT64(struct pause_object, card, "card", JSON_REQUIRED),
    JSON_FIELD_INT64(struct pause_object, until, "until", JSON_REQUIRED),
    JSON_FIELD_INT64(struct pause_object, length, "length", JSON_REQUIRED),
    JSON_FIELD_INT64(struct pause_object, tried, "tried", 0),
    JSON_FIELD_BOOL(struct pause_object, what_if, "trial", 0),
    JSON_FIELD_ARRAY(struct pause_object, former, "former", 0),
    JSON_FIELD_END,
};

struct site_object {
    const char *node, *dialect;
    int64_t total, last;
    const cJSON *rejects, *pauses, *places;
};

static const struct json_field site_fields[] = {
    JSON_FIELD_STRING(struct site_object, node, "node", JSON_REQUIRED),
    JSON_FIELD_STRING(struct site_object, dialect, "dialect", JSON_REQUIRED),
    JSON_FIELD_INT64(struct site_object, total, "total", 0),
    JSON_FIELD_INT64(struct site_object, last, "last", 0),
    JSON_FIELD_ARRAY(struct site_object, rejects, "rejects", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct site_object, pauses, "pauses", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct site_object, places, "places", 0),
    JSON_FIELD_END,
};

struct rejects_object {
    const cJSON *sites;
};

static const struct json_field rejects_fields[] = {
    JSON_FIELD_ARRAY(struct rejects_object, sites, "sites", JSON_REQUIRED),
    JSON_FIELD_END,
};

static bool refuse(const char *field, GError **error)
{
    g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                "field '%s': not what is known of rejected pods", field);
    return false;
}

static bool is_card(int64_t card)
{
    return card >= CARD_UNKNOWN && card < NODE_CARDS_MAX;
}

static bool is_time(int64_t time_ms)
{
    return time_ms >= 0 && time_ms <= REJECTS_TIME_MAX + REJECTS_PAUSE_MAX_MS;
}

static bool read_rejects(struct json_arena *arena, const cJSON *list, struct site *site,
                         GError **error)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, list) {
        struct reject_object fields = {0};
        if (!json_decode(arena, item, reject_fields, &fields, error))
            return false;
        if (!is_card(fields.card) || !is_time(fields.since))
            return refuse("rejects", error);
        g_ptr_array_add(site->recent,
                        reject_new(fields.uid, fields.ns, (int32_t)fields.card, fields.since));
    }
    return true;
}

static bool read_pauses(struct json_arena *arena, const cJSON *list, struct site *site,
                        GError **error)
{
    const cJSON *item, *uid;

    cJSON_ArrayForEach (item, list) {
        struct pause_object fields = {0};
        if (!json_decode(arena, item, pause_fields, &fields, error))
            return false;
        if (!is_card(fields.card) || !is_time(fields.until) || !is_time(fields.tried) ||
            fields.length < 1 || fields.length > REJECTS_PAUSE_MAX_MS)
            return refuse("pauses", error);
        struct pause *pause =
            pause_new(fields.ns, (int32_t)fields.card, fields.until, fields.length);
        pause->what_if = fields.what_if;
        pause->tried_ms = fields.tried;
        pause->author = g_strdup(fields.author);
        g_ptr_array_add(site->pauses, pause);
        cJSON_ArrayForEach (uid, fields.former) {
            if (cJSON_IsString(uid))
                g_hash_table_add(pause->former, g_strdup(uid->valuestring));
        }
    }
    return true;
}

bool rejects_decode(struct rejects *rejects, struct json_arena *arena, const cJSON *object,
                    GError **error)
{
    struct rejects_object list = {0};
    const cJSON *item;

    if (!json_decode(arena, object, rejects_fields, &list, error))
        return false;
    rejects_clear(rejects);
    cJSON_ArrayForEach (item, list.sites) {
        struct site_object fields = {0};
        if (!json_decode(arena, item, site_fields, &fields, error))
            return false;
        const struct dialect *dialect = dialect_find(fields.dialect);
        if (!dialect || fields.last < 0 || fields.last >= REJECTION_N)
            return refuse("sites", error);
        struct site *site = rejects_site(rejects, fields.node, dialect);
        site->total = (uint64_t)MAX(fields.total, 0);
        site->last = (enum rejection_kind)fields.last;
        if (!read_rejects(arena, fields.rejects, site, error) ||
            !read_pauses(arena, fields.pauses, site, error) ||
            !failed_places_decode(site->places, arena, fields.places,
                                  REJECTS_TIME_MAX + REJECTS_PAUSE_MAX_MS, error))
            return false;
    }
    return true;
}
