/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/node_backoff/failed_places.h"

#include "core/fail.h"

#include <gpuledger/mig.h>

static void failed_place_free(gpointer data)
{
    struct failed_place *failed = data;

    g_free(failed->ns);
    g_free(failed);
}

GPtrArray *failed_places_new(void)
{
    return g_ptr_array_new_with_free_func(failed_place_free);
}

static void add(GPtrArray *places, const struct failed_place *place)
{
    struct failed_place *failed = g_new(struct failed_place, 1);

    *failed = *place;
    failed->ns = g_strdup(place->ns);
    if (places->len >= FAILED_PLACES_MAX)
        g_ptr_array_remove_index(places, 0);
    g_ptr_array_add(places, failed);
}

void failed_places_copy(GPtrArray *places, const GPtrArray *from)
{
    g_ptr_array_set_size(places, 0);
    for (guint i = 0; i < from->len; i++)
        add(places, from->pdata[i]);
}

static bool is_there(const struct failed_place *failed, const struct share *share)
{
    return share->place.size > 0 && share->card == failed->card &&
           mig_place_equal(share->place, failed->place);
}

static bool forget(GPtrArray *places, const struct share *share, const char *ns)
{
    bool found = false;

    for (guint i = places->len; i > 0; i--) {
        const struct failed_place *failed = places->pdata[i - 1];
        if (!is_there(failed, share) || (ns && !g_str_equal(ns, failed->ns)))
            continue;
        g_ptr_array_remove_index(places, i - 1);
        found = true;
    }
    return found;
}

bool failed_places_note(GPtrArray *places, const struct allocation *allocation)
{
    bool any = false;

    for (uint32_t i = 0; i < allocation->n_shares; i++) {
        const struct share *share = &allocation->shares[i];
        if (share->device || share->place.size == 0 || share->card == CARD_UNKNOWN)
            continue;
        forget(places, share, allocation->ns);
        add(places, &(struct failed_place){(char *)allocation->ns, share->card, share->place, 0});
        any = true;
    }
    return any;
}

bool failed_places_note_start(GPtrArray *places, const struct allocation *allocation)
{
    bool found = false;

    for (uint32_t i = 0; i < allocation->n_shares; i++)
        found |= forget(places, &allocation->shares[i], NULL);
    return found;
}

bool failed_places_settle(GPtrArray *places, int64_t now_ms)
{
    bool changed = false;

    for (guint i = places->len; i > 0; i--) {
        struct failed_place *failed = places->pdata[i - 1];
        if (failed->until_ms == 0) {
            failed->until_ms = now_ms + FAILED_PLACE_MS;
            changed = true;
        } else if (now_ms >= failed->until_ms) {
            g_ptr_array_remove_index(places, i - 1);
            changed = true;
        }
    }
    return changed;
}

bool failed_places_concern(const GPtrArray *places, const char *ns, int32_t card)
{
    bool any = false;

    for (guint i = 0; i < places->len && !any; i++) {
        const struct failed_place *failed = places->pdata[i];
        any = failed->card == card && g_str_equal(failed->ns, ns);
    }
    return any;
}

void failed_places_leave_out(const GPtrArray *places, const char *ns, struct card *card)
{
    for (guint i = 0; i < places->len; i++) {
        const struct failed_place *failed = places->pdata[i];
        if (failed->card == card->index && g_str_equal(failed->ns, ns))
            mig_leave_out(&card->left_out, failed->place);
    }
}

/* --- for a record ----------------------------------------------------------------------------- */

void failed_places_encode(struct json_writer *writer, const GPtrArray *places)
{
    json_begin_array(writer);
    for (guint i = 0; i < places->len; i++) {
        const struct failed_place *failed = places->pdata[i];
        json_begin_object(writer);
        json_key_string(writer, "namespace", failed->ns);
        json_key_int(writer, "card", failed->card);
        json_key_int(writer, "layout", failed->place.layout);
        json_key_int(writer, "start", failed->place.start);
        json_key_int(writer, "size", failed->place.size);
        json_key_int(writer, "until", failed->until_ms);
        json_end_object(writer);
    }
    json_end_array(writer);
}

struct place_object {
    const char *ns;
    int64_t card, layout, start, size, until;
};

static const struct json_field place_fields[] = {
    JSON_FIELD_STRING(struct place_object, ns, "namespace", JSON_REQUIRED),
    JSON_FIELD_INT64(struct place_object, card, "card", JSON_REQUIRED),
    JSON_FIELD_INT64(struct place_object, layout, "layout", 0),
    JSON_FIELD_INT64(struct place_object, start, "start", JSON_REQUIRED),
    JSON_FIELD_INT64(struct place_object, size, "size", JSON_REQUIRED),
    JSON_FIELD_INT64(struct place_object, until, "until", 0),
    JSON_FIELD_END,
};

static bool is_within(int64_t value, int64_t least, int64_t most)
{
    return value >= least && value <= most;
}

bool failed_places_decode(GPtrArray *places, struct json_arena *arena, const cJSON *list,
                          int64_t time_max, GError **error)
{
    const cJSON *item;

    cJSON_ArrayForEach (item, list) {
        struct place_object object = {0};
        if (!json_decode(arena, item, place_fields, &object, error))
            return false;
        if (!is_within(object.card, 0, NODE_CARDS_MAX - 1) ||
            !is_within(object.layout, 0, UINT8_MAX) || !is_within(object.start, 0, UINT8_MAX) ||
            !is_within(object.size, 1, UINT8_MAX) || !is_within(object.until, 0, time_max))
            return fail_with(error, GPULEDGER_ERROR_INVALID,
                             "field 'places': not a place of a MIG instance");
        add(places, &(struct failed_place){
                        (char *)object.ns,
                        (int32_t)object.card,
                        {(uint8_t)object.layout, (uint8_t)object.start, (uint8_t)object.size},
                        object.until,
                    });
    }
    return true;
}
