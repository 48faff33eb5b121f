/* SPDX-License-Identifier: Apache-2.0 */
#include "store/images/queue_state.h"

#include "store/store_state.h"
#include "policy/what_if.h"
#include "wire/share.h"

#include <gpuledger/error.h>

/* --- writing -------------------------------------------------------------------------------- */

static void write_place(struct json_writer *writer, const struct reservation *place)
{
    const struct allocation *held = place->held;

    json_begin_object(writer);
    json_key_string(writer, "node", place->node);
    if (held->n_shares > 0) {
        json_key_string(writer, "dialect", held->dialect->name);
        json_key_array(writer, "shares");
        for (uint32_t i = 0; i < held->n_shares; i++)
            share_encode(writer, &held->shares[i]);
        json_end_array(writer);
    }
    if (place->ending->len > 0) {
        json_key_array(writer, "ending");
        for (guint i = 0; i < place->ending->len; i++)
            json_string(writer, place->ending->pdata[i]);
        json_end_array(writer);
    }
    json_end_object(writer);
}

static void write_entry(struct json_writer *writer, const struct queue_entry *entry)
{
    json_begin_object(writer);
    json_key_string(writer, "uid", entry->uid);
    if (entry->asked)
        json_key_bool(writer, "asked", true);
    if (entry->asking_ms == INT64_MAX)
        json_key_bool(writer, "excused", true);
    else if (entry->asking_ms != 0)
        json_key_int(writer, "asking", entry->asking_ms);
    if (entry->looked_ms != 0)
        json_key_int(writer, "looked", entry->looked_ms);
    if (entry->until_ms != 0)
        json_key_int(writer, "until", entry->until_ms);
    if (entry->hopeless_ms != 0)
        json_key_int(writer, "hopeless", entry->hopeless_ms);
    if (entry->settled)
        json_key_bool(writer, "settled", true);
    if (entry->place) {
        json_key(writer, "place");
        write_place(writer, entry->place);
    }
    json_end_object(writer);
}

void queue_state_encode(struct json_writer *writer, struct arrivals_image *image)
{
    const GArray *schedulers = arrivals_image_schedulers(image);
    const GArray *entries = arrivals_image_entries(image);

    json_begin_object(writer);
    if (schedulers->len > 0)
        arrivals_encode_schedulers(writer, schedulers);
    json_key_array(writer, "pods");
    for (guint i = 0; i < entries->len; i++)
        write_entry(writer, &g_array_index(entries, struct queue_entry, i));
    json_end_array(writer);
    json_end_object(writer);
}

/* --- reading -------------------------------------------------------------------------------- */

struct place_object {
    const char *node, *dialect;
    const cJSON *shares, *ending;
};

static const struct json_field place_fields[] = {
    JSON_FIELD_STRING(struct place_object, node, "node", JSON_REQUIRED),
    JSON_FIELD_STRING(struct place_object, dialect, "dialect", 0),
    JSON_FIELD_ARRAY(struct place_object, shares, "shares", 0),
    JSON_FIELD_ARRAY(struct place_object, ending, "ending", 0),
    JSON_FIELD_END,
};

struct entry_object {
    struct queue_entry entry;
    bool excused;
    const cJSON *place;
};

static const struct json_field entry_fields[] = {
    JSON_FIELD_STRING(struct entry_object, entry.uid, "uid", JSON_REQUIRED),
    JSON_FIELD_BOOL(struct entry_object, entry.asked, "asked", 0),
    JSON_FIELD_BOOL(struct entry_object, excused, "excused", 0),
    JSON_FIELD_INT64(struct entry_object, entry.asking_ms, "asking", 0),
    JSON_FIELD_INT64(struct entry_object, entry.looked_ms, "looked", 0),
    JSON_FIELD_INT64(struct entry_object, entry.until_ms, "until", 0),
    JSON_FIELD_INT64(struct entry_object, entry.hopeless_ms, "hopeless", 0),
    JSON_FIELD_BOOL(struct entry_object, entry.settled, "settled", 0),
    JSON_FIELD_OBJECT(struct entry_object, place, "place", 0),
    JSON_FIELD_END,
};

struct list_object {
    const cJSON *pods, *schedulers, *brought_by;
};

static const struct json_field list_fields[] = {
    JSON_FIELD_ARRAY(struct list_object, pods, "pods", JSON_REQUIRED),
    JSON_FIELD_ARRAY(struct list_object, schedulers, "schedulers", 0),
    JSON_FIELD_ARRAY(struct list_object, brought_by, "broughtBy", 0),
    JSON_FIELD_END,
};

static struct reservation *refuse(GError **error)
{
    g_set_error_literal(error, GPULEDGER_ERROR, GPULEDGER_ERROR_INVALID,
                        "field 'place': no place of such a pod");
    return NULL;
}

/* The request's own text of a pool's resource; NULL: it asks for none of that. */
static const char *find_device(const struct request *request, const char *device)
{
    for (uint32_t i = 0; i < request->n_asks; i++) {
        if (g_strcmp0(request->asks[i].device, device) == 0)
            return request->asks[i].device;
    }
    return NULL;
}

static bool read_shares(struct json_arena *arena, const cJSON *list, struct placement *placement)
{
    const cJSON *item;

    if (cJSON_GetArraySize(list) > REQUEST_ASKS_MAX)
        return false;
    cJSON_ArrayForEach (item, list) {
        struct share *share = &placement->shares[placement->n_shares++];
        if (!share_decode(arena, item, share))
            return false;
        if (share->device && !(share->device = find_device(placement->request, share->device)))
            return false;
    }
    return true;
}

/* Of a pod that asks for this. */
static struct reservation *read_place(struct json_arena *arena, const cJSON *object,
                                      const char *uid, const struct store *store, GError **error)
{
    struct placement placement = {.request = store_request(store, uid)};
    struct place_object fields = {0};
    const cJSON *item;

    if (!json_decode(arena, object, place_fields, &fields, error))
        return NULL;
    if (!fields.shares)
        return fields.ending ? refuse(error)
                             : reservation_new(fields.node, allocation_new(uid, "", uid, 0));
    while (placement.request && g_strcmp0(placement.request->dialect->name, fields.dialect) != 0)
        placement.request = placement.request->alternative;
    if (!placement.request || !read_shares(arena, fields.shares, &placement))
        return refuse(error);
    const struct pending *pending = g_hash_table_lookup(store->pending, uid);
    struct reservation *place =
        reservation_new(fields.node, what_if_allocation(uid, pending->priority, &placement));
    cJSON_ArrayForEach (item, fields.ending) {
        if (cJSON_IsString(item))
            g_ptr_array_add(place->ending, g_strdup(item->valuestring));
    }
    return place;
}

static void entry_clear(gpointer data)
{
    reservation_unref((struct reservation *)((struct queue_entry *)data)->place);
}

/* For arrivals_learn; borrows from the arena, and notes the schedulers. Of pods that the store does not know nothing is
 * said. NULL, with an error: it cannot be understood. */
static GArray *read_entries(struct json_arena *arena, const cJSON *object, struct store *store,
                            GError **error)
{
    g_autoptr(GArray) entries = g_array_new(FALSE, FALSE, sizeof(struct queue_entry));
    struct list_object list = {0};
    const cJSON *item;

    g_array_set_clear_func(entries, entry_clear);
    if (!json_decode(arena, object, list_fields, &list, error))
        return NULL;
    arrivals_learn_schedulers(store->arrivals, list.schedulers, list.brought_by);
    cJSON_ArrayForEach (item, list.pods) {
        struct entry_object fields = {0};
        if (!json_decode(arena, item, entry_fields, &fields, error))
            return NULL;
        if (!store_request(store, fields.entry.uid))
            continue;
        if (fields.excused)
            fields.entry.asking_ms = INT64_MAX;
        if (fields.place &&
            !(fields.entry.place = read_place(arena, fields.place, fields.entry.uid, store, error)))
            return NULL;
        g_array_append_val(entries, fields.entry);
    }
    return g_steal_pointer(&entries);
}

/* --- the part ------------------------------------------------------------------------------------- */

static void *begin(void *self)
{
    struct store *store = self;

    if (store->options.hold_ms == 0)
        return NULL;
    struct arrivals_image *image = arrivals_image_new();
    arrivals_image_begin(image, store->arrivals, store->ledger, store->nominations);
    return image;
}

static bool take(void *image)
{
    return arrivals_image_take(image);
}

static void encode(struct json_writer *writer, void *image)
{
    queue_state_encode(writer, image);
}

static void free_image(void *image)
{
    arrivals_image_free(image);
}

static bool learn(void *self, struct json_arena *arena, const cJSON *object, GError **error)
{
    struct store *store = self;
    g_autoptr(GArray) entries = read_entries(arena, object, store, error);

    if (entries)
        arrivals_learn(store->arrivals, store->ledger, store->nominations, entries);
    return entries != NULL;
}

static const struct part_image image = {.kind = "arrivals",
                                        .begin = begin,
                                        .take = take,
                                        .encode = encode,
                                        .free = free_image,
                                        .compared = "who has been waited for",
                                        .learn = learn};

const struct part part_arrivals = {
    .name = "arrivals",
    .source = PART_OF_CALLS,
    .start = store_as_part,
    .image = &image,
};
