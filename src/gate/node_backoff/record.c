/* SPDX-License-Identifier: Apache-2.0 */
/* What is known of rejected pods, as a record has it. */
#include "gate/node_backoff/failed_places.h"
#include "gate/node_backoff/node_backoff_state.h"

#include <gpuledger/error.h>
#include <string.h>

struct image {
    struct node_backoff *copy, *from;
};

static void *begin(void *self)
{
    struct image *image = g_new(struct image, 1);

    *image = (struct image){node_backoff_new(NULL, NULL), self};
    roll_begin_image(&image->from->roll, node_backoff_copy_site, image->copy);
    return image;
}

static bool take(void *data)
{
    return roll_take(&((struct image *)data)->from->roll, NODE_BACKOFF_COPIED);
}

static void free_image(void *data)
{
    node_backoff_free(((struct image *)data)->copy);
    g_free(data);
}

static void write_rejected(struct json_writer *writer, const struct rejected *rejected)
{
    json_begin_object(writer);
    json_key_string(writer, "uid", rejected->uid);
    json_key_string(writer, "namespace", rejected->ns);
    json_key_int(writer, "card", rejected->card);
    json_key_int(writer, "since", rejected->since_ms);
    json_end_object(writer);
}

static void write_backoff(struct json_writer *writer, const struct backoff *backoff)
{
    GHashTableIter iter;
    gpointer uid;

    json_begin_object(writer);
    if (backoff->ns)
        json_key_string(writer, "namespace", backoff->ns);
    json_key_int(writer, "card", backoff->card);
    json_key_int(writer, "until", backoff->until_ms);
    json_key_int(writer, "length", backoff->length_ms);
    json_key_bool(writer, "trial", backoff->probing);
    json_key_int(writer, "tried", backoff->probed_ms);
    json_key_string(writer, "author", backoff->author);
    json_key_array(writer, "former");
    g_hash_table_iter_init(&iter, backoff->former);
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
        write_rejected(writer, site->recent->pdata[i]);
    json_end_array(writer);
    json_key_array(writer, "pauses");
    for (guint i = 0; i < site->backoffs->len; i++)
        write_backoff(writer, site->backoffs->pdata[i]);
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

static void encode(struct json_writer *writer, void *data)
{
    const struct image *image = data;
    g_autoptr(GPtrArray) sites = g_ptr_array_copy(image->copy->roll.entries, NULL, NULL);

    g_ptr_array_sort(sites, compare_sites);
    json_begin_object(writer);
    json_key_array(writer, "sites");
    for (guint i = 0; i < sites->len; i++)
        write_site(writer, sites->pdata[i]);
    json_end_array(writer);
    json_end_object(writer);
}

struct rejected_object {
    const char *uid, *ns;
    int64_t card, since;
};

static const struct json_field rejected_fields[] = {
    JSON_FIELD_STRING(struct rejected_object, uid, "uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct rejected_object, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_INT64(struct rejected_object, card, "card", JSON_REQUIRED),
    JSON_FIELD_INT64(struct rejected_object, since, "since", 0),
    JSON_FIELD_END,
};

struct backoff_object {
    const char *ns, *author;
    int64_t card, until, length, probed;
    bool probing;
    const cJSON *former;
};

static const struct json_field backoff_fields[] = {
    JSON_FIELD_STRING(struct backoff_object, ns, "namespace", 0),
    JSON_FIELD_STRING(struct backoff_object, author, "author", 0),
    JSON_FIELD_INT64(struct backoff_object, card, "card", JSON_REQUIRED),
    JSON_FIELD_INT64(struct backoff_object, until, "until", JSON_REQUIRED),
    JSON_FIELD_INT64(struct backoff_object, length, "length", JSON_REQUIRED),
    JSON_FIELD_INT64(struct backoff_object, probed, "tried", 0),
    JSON_FIELD_BOOL(struct backoff_object, probing, "trial", 0),
    JSON_FIELD_ARRAY(struct backoff_object, former, "former", 0),
    JSON_FIELD_END,
};

struct site_object {
    const char *node, *dialect;
    int64_t total, last;
    const cJSON *rejected, *backoffs, *places;
};

static const struct json_field site_fields[] = {
    JSON_FIELD_STRING(struct site_object, node, "node", JSON_REQUIRED),
    JSON_FIELD_STRING(struct site_object, dialect, "dialect", JSON_REQUIRED),
    JSON_FIELD_INT64(struct site_object, total, "total", 0),
    JSON_FIELD_INT64(struct site_object, last, "last", 0),
    JSON_FIELD_ARRAY(struct site_object, rejected, "rejects", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct site_object, backoffs, "pauses", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct site_object, places, "places", 0),
    JSON_FIELD_END,
};

struct sites_object {
    const cJSON *sites;
};

static const struct json_field sites_fields[] = {
    JSON_FIELD_ARRAY(struct sites_object, sites, "sites", JSON_REQUIRED),
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
    return time_ms >= 0 && time_ms <= NODE_BACKOFF_TIME_MAX + NODE_BACKOFF_MAX_MS;
}

static bool read_rejected(struct json_arena *arena, const cJSON *list, struct site *site,
                          GError **error)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, list) {
        struct rejected_object fields = {0};
        if (!json_decode(arena, item, rejected_fields, &fields, error))
            return false;
        if (!is_card(fields.card) || !is_time(fields.since))
            return refuse("rejects", error);
        g_ptr_array_add(site->recent,
                        rejected_new(fields.uid, fields.ns, (int32_t)fields.card, fields.since));
    }
    return true;
}

static bool read_backoffs(struct json_arena *arena, const cJSON *list, struct site *site,
                          GError **error)
{
    const cJSON *item, *uid;

    cJSON_ArrayForEach (item, list) {
        struct backoff_object fields = {0};
        if (!json_decode(arena, item, backoff_fields, &fields, error))
            return false;
        if (!is_card(fields.card) || !is_time(fields.until) || !is_time(fields.probed) ||
            fields.length < 1 || fields.length > NODE_BACKOFF_MAX_MS)
            return refuse("pauses", error);
        struct backoff *backoff =
            backoff_new(fields.ns, (int32_t)fields.card, fields.until, fields.length);
        backoff->probing = fields.probing;
        backoff->probed_ms = fields.probed;
        backoff->author = g_strdup(fields.author);
        g_ptr_array_add(site->backoffs, backoff);
        cJSON_ArrayForEach (uid, fields.former) {
            if (cJSON_IsString(uid))
                g_hash_table_add(backoff->former, g_strdup(uid->valuestring));
        }
    }
    return true;
}

static bool learn(void *self, struct json_arena *arena, const cJSON *object, GError **error)
{
    struct sites_object list = {0};
    const cJSON *item;

    if (!json_decode(arena, object, sites_fields, &list, error))
        return false;
    node_backoff_clear(self);
    cJSON_ArrayForEach (item, list.sites) {
        struct site_object fields = {0};
        if (!json_decode(arena, item, site_fields, &fields, error))
            return false;
        const struct dialect *dialect = dialect_find(fields.dialect);
        if (!dialect || fields.last < 0 || fields.last >= REJECTION_N)
            return refuse("sites", error);
        struct site *site = node_backoff_site(self, fields.node, dialect);
        site->total = (uint64_t)MAX(fields.total, 0);
        site->last = (enum rejection_kind)fields.last;
        if (!read_rejected(arena, fields.rejected, site, error) ||
            !read_backoffs(arena, fields.backoffs, site, error) ||
            !failed_places_decode(site->places, arena, fields.places,
                                  NODE_BACKOFF_TIME_MAX + NODE_BACKOFF_MAX_MS, error))
            return false;
    }
    return true;
}

const struct part_image node_backoff_image = {"rejects", begin, take, encode, free_image, learn};
