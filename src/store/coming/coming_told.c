/* SPDX-License-Identifier: Apache-2.0 */
/* What a record has of pods on their way (coming.c). */
#include "store/store_state.h"

#include <gpuledger/error.h>
#include <string.h>

/* --- writing -------------------------------------------------------------------------------- */

/* As whoever reads the record will know them: by what the watch has shown. */
static void renew_kept(struct store *store)
{
    g_autoptr(GPtrArray) kept = hints_list_kept(store->hints);

    for (guint i = 0; i < kept->len; i++) {
        const struct hint *one = kept->pdata[i];
        const struct request *request = store_request(store, one->uid);
        g_autofree char *uid = g_strdup(one->uid), *node = g_strdup(one->node);
        if (request)
            hints_note(store->hints,
                       &(struct hint_about){uid, one->ns, node, request, one->until_ms, true});
        else
            hints_forget(store->hints, uid);
    }
}

static void write_nomination(const char *uid, int64_t until_ns, void *data)
{
    struct json_writer *writer = data;
    g_autofree char *until = g_strdup_printf("%" G_GINT64_FORMAT, until_ns);

    json_begin_object(writer);
    json_key_string(writer, "uid", uid);
    json_key_string(writer, "until", until);
    json_end_object(writer);
}

static void *begin(void *self)
{
    struct store *store = self;
    GString *text = g_string_new(NULL);
    struct json_writer writer;

    renew_kept(store);
    g_autoptr(GPtrArray) kept = hints_list_kept(store->hints);
    g_autoptr(GArray) schedulers = arrivals_list_schedulers(store->arrivals);
    json_writer_init(&writer, text);
    json_begin_object(&writer);
    arrivals_encode_schedulers(&writer, schedulers);
    json_key_array(&writer, "pods");
    for (guint i = 0; i < kept->len; i++) {
        const struct hint *one = kept->pdata[i];
        json_begin_object(&writer);
        json_key_string(&writer, "uid", one->uid);
        json_key_string(&writer, "namespace", one->ns);
        json_key_string(&writer, "node", one->node);
        json_key_int(&writer, "until", one->until_ms);
        json_end_object(&writer);
    }
    json_end_array(&writer);
    json_key_array(&writer, "nominated");
    nominations_each_coming(store->nominations, write_nomination, &writer);
    json_end_array(&writer);
    json_end_object(&writer);
    return g_string_free(text, FALSE);
}

/* --- reading -------------------------------------------------------------------------------- */

struct coming_object {
    const cJSON *schedulers, *brought_by, *pods, *nominated;
};

static const struct json_field coming_fields[] = {
    JSON_FIELD_ARRAY(struct coming_object, schedulers, "schedulers", 0),
    JSON_FIELD_ARRAY(struct coming_object, brought_by, "broughtBy", 0),
    JSON_FIELD_ARRAY(struct coming_object, pods, "pods", 0),
    JSON_FIELD_ARRAY(struct coming_object, nominated, "nominated", 0),
    JSON_FIELD_END,
};

struct kept_object {
    const char *uid, *ns, *node;
    int64_t until_ms;
};

static const struct json_field kept_fields[] = {
    JSON_FIELD_STRING(struct kept_object, uid, "uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct kept_object, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_STRING(struct kept_object, node, "node", JSON_REQUIRED),
    JSON_FIELD_INT64(struct kept_object, until_ms, "until", JSON_REQUIRED),
    JSON_FIELD_END,
};

struct nominated_object {
    const char *uid, *until;
};

static const struct json_field nominated_fields[] = {
    JSON_FIELD_STRING(struct nominated_object, uid, "uid", JSON_REQUIRED),
    JSON_FIELD_STRING(struct nominated_object, until, "until", JSON_REQUIRED),
    JSON_FIELD_END,
};

static bool learn_kept(struct store *store, struct json_arena *arena, const cJSON *list,
                       GError **error)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, list) {
        struct kept_object one = {0};
        if (!json_decode(arena, item, kept_fields, &one, error))
            return false;
        const struct request *request = store_request(store, one.uid);
        if (request)
            hints_note(store->hints, &(struct hint_about){one.uid, one.ns, one.node, request,
                                                          one.until_ms, true});
    }
    return true;
}

static bool learn_nominated(struct store *store, struct json_arena *arena, const cJSON *list,
                            GError **error)
{
    const cJSON *item;

    nominations_learn_none_comes(store->nominations);
    cJSON_ArrayForEach (item, list) {
        struct nominated_object one = {0};
        int64_t until_ns;
        if (!json_decode(arena, item, nominated_fields, &one, error))
            return false;
        if (!g_ascii_string_to_signed(one.until, 10, -2, INT64_MAX, &until_ns, NULL)) {
            g_set_error(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "field 'until': '%.32s' is no time", one.until);
            return false;
        }
        nominations_learn_coming(store->nominations, one.uid, until_ns);
    }
    return true;
}

static bool learn(void *self, struct json_arena *arena, const cJSON *object, GError **error)
{
    struct store *store = self;
    struct coming_object fields = {0};

    if (!json_decode(arena, object, coming_fields, &fields, error))
        return false;
    arrivals_learn_schedulers(store->arrivals, fields.schedulers, fields.brought_by);
    return learn_kept(store, arena, fields.pods, error) &&
           learn_nominated(store, arena, fields.nominated, error);
}

static const struct part_image image = {
    .kind = "coming", .begin = begin, .encode = store_write_text, .free = g_free, .learn = learn};

const struct part part_coming = {
    .name = "coming",
    .source = PART_OF_CALLS,
    .start = store_as_part,
    .image = &image,
};
